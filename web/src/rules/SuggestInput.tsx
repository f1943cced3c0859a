import { TagsInput, type TagsInputProps } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type FacetField, facets } from "../api/exchanges";
import { number } from "../ui/words";
import styles from "./editor.module.css";

interface Props extends Pick<TagsInputProps, "label" | "description" | "placeholder" | "value" | "onChange" | "error"> {
  facet: FacetField;
  /** Only values that occur here are offered. */
  within: { environments?: string[]; applications?: string[] };
}

const quietMs = 200;

/** Texts, some of which are offered because they occur in exchanges. Any other text is allowed. */
export function SuggestInput({ facet, within, placeholder, ...input }: Props) {
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState(false);
  const [opened, setOpened] = useState(false);
  const [prefix] = useDebouncedValue(typed.split("*")[0] ?? "", quietMs);
  // Suggestions are loaded when a person enters the field. Without an answer, the person can still
  // type.
  const { data } = useQuery({ ...facets(facet, prefix, within), enabled: asked, placeholderData: keepPreviousData });
  const counts = new Map(data?.map(({ value, count }) => [value, count]));
  return (
    <TagsInput
      {...input}
      // The list would hide the error below the input, so that it then waits for the first character.
      dropdownOpened={opened && (!input.error || typed !== "")}
      onDropdownOpen={() => setOpened(true)}
      onDropdownClose={() => setOpened(false)}
      onBlur={() => setOpened(false)}
      {...(input.value?.length ? {} : { placeholder })}
      data={[...counts.keys()].filter((value) => value !== "")}
      filter={({ options }) => options}
      searchValue={typed}
      onSearchChange={setTyped}
      onFocus={() => {
        setAsked(true);
        setOpened(true);
      }}
      maxDropdownHeight={260}
      renderOption={({ option }) => (
        <span className={styles.suggestion}>
          <span>{option.value}</span>
          <span className={styles.count}>{number(counts.get(option.value) ?? 0)}</span>
        </span>
      )}
    />
  );
}
