import { Combobox, useCombobox } from "@mantine/core";
import { type ReactNode, useState } from "react";
import styles from "./FilterMenu.module.css";
import { IconCheck, IconChevron } from "./icons";

export interface Choice {
  value: string;
  /** What is searched for, and the text of the closed menu. */
  text: string;
  look?: ReactNode;
}

interface Props {
  name: string;
  choices: readonly Choice[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  /** The text of a chosen value that is not among the choices; by default, the value. */
  unknown?: string;
  /** Offers to use the typed text, if the choices are not complete. */
  free?: boolean;
  search?: boolean;
  /** Called when the menu opens, for choices that are only loaded then. */
  onOpen?: () => void;
}

/** A menu with any number of choices; choosing none means no restriction. */
export function FilterMenu(props: Props) {
  const { name, choices, chosen, onChange, unknown, free = false, search = false, onOpen } = props;
  const [typed, setTyped] = useState("");
  const combobox = useCombobox({
    onDropdownOpen: () => {
      onOpen?.();
      if (search) combobox.focusSearchInput();
    },
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      combobox.focusTarget();
      setTyped("");
    },
  });
  const known = [
    ...choices,
    ...chosen
      .filter((value) => !choices.some((choice) => choice.value === value))
      .map((value): Choice => ({ value, text: unknown ?? value })),
  ];
  const wanted = typed.trim().toLowerCase();
  const shown = known.filter((choice) => choice.text.toLowerCase().includes(wanted));
  const offersTyped = free && wanted !== "" && !known.some((choice) => choice.value === typed.trim());
  const chosenText = known.filter((choice) => chosen.includes(choice.value)).map((choice) => choice.text);
  const first = chosenText[0];

  return (
    <Combobox
      store={combobox}
      width={240}
      position="bottom-end"
      shadow="none"
      classNames={{ dropdown: styles.dropdown ?? "", option: styles.option ?? "", options: styles.options ?? "" }}
      onOptionSubmit={(value) =>
        onChange(chosen.includes(value) ? chosen.filter((other) => other !== value) : [...chosen, value])
      }
    >
      <Combobox.Target targetType="button">
        <button
          type="button"
          className={first === undefined ? styles.button : `${styles.button} ${styles.active}`}
          onClick={() => combobox.toggleDropdown()}
        >
          <span className={styles.value}>
            {first !== undefined && <span className="visually-hidden">{name}: </span>}
            {first === undefined ? name : chosenText.length === 1 ? first : `${first} +${chosenText.length - 1}`}
          </span>
          <IconChevron size={14} aria-hidden="true" />
        </button>
      </Combobox.Target>
      <Combobox.Dropdown>
        {search && (
          <Combobox.Search
            value={typed}
            onChange={(event) => {
              setTyped(event.currentTarget.value);
              combobox.selectFirstOption();
            }}
            placeholder={`Find ${name.toLowerCase()}`}
            aria-label={`Find ${name.toLowerCase()}`}
          />
        )}
        <Combobox.Options aria-label={name}>
          {shown.map((choice) => (
            <Combobox.Option key={choice.value} value={choice.value} active={chosen.includes(choice.value)}>
              <span className={styles.tick}>
                {chosen.includes(choice.value) && <IconCheck size={15} stroke={2.2} aria-hidden="true" />}
              </span>
              {choice.look ?? choice.text}
            </Combobox.Option>
          ))}
          {offersTyped && (
            <Combobox.Option value={typed.trim()}>
              <span className={styles.tick} />
              Exactly “{typed.trim()}”
            </Combobox.Option>
          )}
          {shown.length === 0 && !offersTyped && <Combobox.Empty>No matches</Combobox.Empty>}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
