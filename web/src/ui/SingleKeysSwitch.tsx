import { Checkbox } from "@mantine/core";
import { keyName } from "./commands";
import { singleKeys, useSetting } from "./setting";

/** Letters alone are pressed by accident, and by speech input with every word: a person can switch them off. */
export function SingleKeysSwitch() {
  const value = useSetting(singleKeys);
  return (
    <Checkbox
      size="xs"
      label="Single-key shortcuts"
      description={`Letters and symbols alone are shortcuts. ${keyName("mod+k")}, Enter, Esc and the arrow keys always work.`}
      checked={value === "on"}
      onChange={(event) => singleKeys.set(event.currentTarget.checked ? "on" : "off")}
    />
  );
}
