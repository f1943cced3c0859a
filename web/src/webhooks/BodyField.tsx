import { Input, Textarea } from "@mantine/core";
import { type ComponentType, useEffect, useId, useState } from "react";
import { Button } from "../ui/Button";
import formStyles from "../ui/form.module.css";
import type { BodyEditorProps } from "./BodyEditor";
import { example } from "./body";

interface Props {
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

/** The body of a webhook's messages. A plain field is shown until the editor is loaded, or if it cannot be loaded. */
export function BodyField({ value, error, onChange }: Props) {
  const id = useId();
  const Editor = useEditor();
  const [typing, setTyping] = useState(false);
  const described = [`${id}-description`, ...(error ? [`${id}-error`] : [])].join(" ");
  return (
    <Input.Wrapper
      id={id}
      label="Body"
      labelElement="div"
      description="JSON with Mustache templates in its strings: type {{ for the variables. Leave blank to use the default layout."
      error={error}
    >
      {Editor && !typing ? (
        <Editor value={value} error={error} describedBy={described} onChange={onChange} />
      ) : (
        <Textarea
          aria-label="Body"
          aria-describedby={described}
          rows={6}
          spellCheck={false}
          classNames={{ input: formStyles.mono ?? "" }}
          value={value}
          error={Boolean(error)}
          // A person who is typing stays in the field that they began in.
          onFocus={() => setTyping(true)}
          onBlur={() => setTyping(false)}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      )}
      {value.trim() === "" && (
        <Button look="quiet" onClick={() => onChange(example)}>
          Insert example
        </Button>
      )}
    </Input.Wrapper>
  );
}

function useEditor(): ComponentType<BodyEditorProps> | undefined {
  const [editor, setEditor] = useState<{ Editor: ComponentType<BodyEditorProps> }>();
  useEffect(() => {
    let wanted = true;
    import("./BodyEditor").then(
      ({ BodyEditor }) => wanted && setEditor({ Editor: BodyEditor }),
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, []);
  return editor?.Editor;
}
