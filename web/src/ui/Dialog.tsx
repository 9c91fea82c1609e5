import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";

/** A window over the page; Esc closes it. Its code is loaded with what opens it: keep it out of the first load. */
export function Dialog({
  title,
  onClose,
  wide = false,
  hideTitle = false,
  children,
}: {
  title: string;
  onClose: () => void;
  wide?: boolean;
  hideTitle?: boolean;
  children: ReactNode;
}) {
  return (
    <Base.Root open onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-30 bg-[var(--black-a6,rgb(0_0_0/.35))]" />
        <Base.Popup
          className={`fixed top-[12vh] left-1/2 z-30 flex max-h-[76vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col overflow-hidden rounded-md border border-line bg-ground shadow-xl outline-none ${wide ? "max-w-3xl" : "max-w-lg"}`}
        >
          <Base.Title className={hideTitle ? "sr-only" : "border-b border-line px-4 py-3 text-md font-semibold"}>{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
