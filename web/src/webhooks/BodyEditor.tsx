import {
  autocompletion,
  type CompletionContext,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  pickedCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, forceLinting, linter, lintKeymap } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, MatchDecorator, ViewPlugin } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { complete, offers, openAt, placeOf } from "../ui/completion";
import { bodyVariables } from "../ui/variables";
import styles from "./BodyEditor.module.css";

export interface BodyEditorProps {
  value: string;
  /** The API's error for the value. */
  error: string | undefined;
  /** The ids of the elements that describe the field. */
  describedBy: string | undefined;
  onChange: (value: string) => void;
}

const look = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--text-1)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--acknowledged)" },
  { tag: [tags.separator, tags.brace, tags.squareBracket], color: "var(--text-3)" },
  { tag: tags.invalid, color: "var(--danger)" },
]);

const tag = new MatchDecorator({
  regexp: /\{\{\{.*?\}\}\}|\{\{.*?\}\}/g,
  decoration: Decoration.mark({ class: styles.tag ?? "" }),
});

/** Colours the Mustache tags. */
const tinted = ViewPlugin.define(
  (view) => ({
    set: tag.createDeco(view),
    update(changed) {
      this.set = tag.updateDeco(changed, this.set);
    },
  }),
  {
    decorations: ({ set }) => set,
  },
);

/** Offers variables between braces. */
function variablesAt({ state, pos }: CompletionContext) {
  const open = openAt(state.sliceDoc(), pos);
  if (!open) return null;
  return {
    from: open.from,
    to: pos,
    filter: false,
    options: offers(bodyVariables, open.typed).map(({ name, description }) => ({
      label: name,
      detail: description,
      apply: (view: EditorView, completion: object) => {
        const text = view.state.sliceDoc();
        const at = openAt(text, view.state.selection.main.head);
        if (!at) return;
        const done = complete(text, at, name);
        // Everything except the name and its braces stays.
        const tail = text.length - (done.text.length - done.caret);
        view.dispatch({
          changes: { from: at.from, to: tail, insert: done.text.slice(at.from, done.caret) },
          selection: { anchor: done.caret },
          annotations: pickedCompletion.of(completion as never),
        });
      },
    })),
  };
}

const parse = jsonParseLinter();

/** A JSON editor with completion of variables. Tab leaves it, as it leaves other fields. */
export function BodyEditor({ value, error, describedBy, onChange }: BodyEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const shown = useRef<EditorView>(undefined);
  const now = useRef({ value, error, onChange });
  now.current = { value, error, onChange };
  const attributes = useRef(new Compartment());

  useEffect(() => {
    const parent = host.current;
    if (!parent) return;
    const view = new EditorView({
      parent,
      state: EditorState.create({
        doc: now.current.value,
        extensions: [
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          json(),
          syntaxHighlighting(look),
          tinted,
          autocompletion({ override: [variablesAt], icons: false }),
          linter((at) => [...problemsOf(at), ...refusalOf(at, now.current.error)]),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.lineWrapping,
          attributes.current.of([]),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged && state.sliceDoc() !== now.current.value) now.current.onChange(state.sliceDoc());
          }),
        ],
      }),
    });
    shown.current = view;
    return () => {
      shown.current = undefined;
      view.destroy();
    };
  }, []);

  useEffect(() => {
    const view = shown.current;
    if (!view || view.state.sliceDoc() === value) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    const view = shown.current;
    if (!view) return;
    const named = {
      "aria-label": "Body",
      "aria-invalid": String(Boolean(error)),
      ...(describedBy ? { "aria-describedby": describedBy } : {}),
    };
    view.dispatch({ effects: attributes.current.reconfigure(EditorView.contentAttributes.of(named)) });
    forceLinting(view);
  }, [error, describedBy]);

  return <div ref={host} className={styles.editor} data-wrong={error ? "" : undefined} />;
}

/** The error if it is not JSON. An empty body means the default layout. */
function problemsOf(view: EditorView): readonly Diagnostic[] {
  return view.state.sliceDoc().trim() === "" ? [] : parse(view);
}

/** The place in an error of the API, if there is one. */
function refusalOf(view: EditorView, error: string | undefined): Diagnostic[] {
  const from = error === undefined ? -1 : placeOf(view.state.sliceDoc(), error);
  if (error === undefined || from < 0 || from > view.state.doc.length) return [];
  const tagEnd = view.state.sliceDoc().indexOf("}}", from);
  const to = tagEnd < 0 ? view.state.doc.lineAt(from).to : tagEnd + 2;
  return [{ from, to, severity: "error", message: error }];
}
