import { expect, test } from "vitest";
import { fieldsOf } from "./definition";
import { sections, wrongIn } from "./sections";
import { initialAttribute, initialValues } from "./values";

test.each(["PER_EXCHANGE", "COUNT_IN_WINDOW", "RATIO_IN_WINDOW", "DURATION_IN_WINDOW", "ABSENT_IN_WINDOW"] as const)(
  "each field of %s is in one section",
  (fireMode) => {
    const filter = { ...initialValues.filter, attributes: [initialAttribute] };
    const known = fieldsOf({ fireMode, filter });
    for (const field of known.filter((name) => name !== "name")) {
      const homes = sections.filter((section) => wrongIn(section, [field], () => "wrong") === 1);
      expect(homes, field).toHaveLength(1);
    }
    const wrong = (field: string) => (field.startsWith("filter.") ? "wrong" : undefined);
    expect(sections.map((section) => wrongIn(section, known, wrong) > 0)).toEqual([
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
  },
);
