import { Checkbox } from "@mantine/core";
import { keyName } from "./commands";
import { singleKeys, useSetting } from "./setting";

/** Single letters can be pressed by accident, or by speech input with every word: people can switch them off. */
export function SingleKeysSwitch() {
  const value = useSetting(singleKeys);
  return (
    <Checkbox
      size="xs"
      label="Single-key shortcuts"
      description={`Single letters and symbols are shortcuts. ${keyName("mod+k")}, Enter, Esc and the arrow keys always work.`}
      checked={value === "on"}
      onChange={(event) => singleKeys.set(event.currentTarget.checked ? "on" : "off")}
    />
  );
}
