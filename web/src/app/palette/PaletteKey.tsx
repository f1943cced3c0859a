import { useEffect, useState, useSyncExternalStore } from "react";
import { createPortal } from "react-dom";
import { reasonOf } from "../../api/errors";
import { keyName, useCommands } from "../../ui/commands";
import { IconSearch } from "../../ui/icons";
import { useToast } from "../../ui/toast";
import { paletteChunk } from "./chunk";

/** Opens the palette, by Ctrl or Cmd and K anywhere, or by its button. It is loaded when it is first needed. */
export function PaletteKey({ className }: { className: string | undefined }) {
  const [open, setOpen] = useState(false);
  const { part: CommandPalette } = useSyncExternalStore(paletteChunk.subscribe, paletteChunk.current);
  const toast = useToast();
  useEffect(() => {
    if (!open) return;
    void paletteChunk.load().then(() => {
      const { failure } = paletteChunk.current();
      if (!failure) return;
      setOpen(false);
      toast(reasonOf(failure), "failed");
    });
  }, [open, toast]);
  useCommands([
    {
      id: "find",
      section: "Actions",
      label: "Open command palette",
      keys: ["mod+k"],
      // Over another dialog, it would hide the question there.
      run: () => setOpen((before) => !before && !document.querySelector("dialog[open]")),
    },
  ]);
  return (
    <>
      <button
        type="button"
        className={className}
        title={`Search or run a command (${keyName("mod+k")})`}
        aria-keyshortcuts="Control+K Meta+K"
        onClick={() => setOpen(true)}
      >
        <IconSearch size={20} stroke={1.7} aria-hidden="true" />
        Find
      </button>
      {open && CommandPalette && createPortal(<CommandPalette onClose={() => setOpen(false)} />, document.body)}
    </>
  );
}
