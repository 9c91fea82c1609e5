import { ok } from "@berth/client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { berth } from "~/api/client";
import { word } from "~/command";
import Confirm from "~/ui/Confirm";
import { type Alert, about } from "./alerts";

/** Says who is at an alert, and what they do. */
export default function Acknowledge({ alert, onClose }: { alert: Alert; onClose: () => void }) {
  const cache = useQueryClient();
  const [note, setNote] = useState("");
  const act = async () => {
    if (!note.trim()) throw new Error("say what you do about it: those who see it will read it");
    await ok(berth.POST("/alerts/{alert}/acknowledge", { params: { path: { alert: alert.id } }, body: { note: note.trim() } }));
    await cache.invalidateQueries({ queryKey: ["/alerts"] });
  };
  return (
    <Confirm
      title={`Acknowledge ${about(alert)}`}
      verb="Acknowledge alert"
      command={`berth alerts ack ${alert.id} --note ${word(note.trim() || "TEXT")}`}
      act={act}
      onClose={onClose}
    >
      <p>Others see that you are at it. It stays open until the trouble is over, and closes by itself.</p>
      <label className="mt-3 flex flex-col gap-1">
        <span>What do you do about it?</span>
        <input
          value={note}
          maxLength={500}
          onChange={(e) => setNote(e.target.value)}
          className="h-9 rounded-md border border-line-strong bg-ground px-2"
        />
      </label>
    </Confirm>
  );
}
