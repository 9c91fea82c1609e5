import { ok } from "@berth/client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { berth } from "~/api/client";
import Confirm from "~/ui/Confirm";
import { word } from "~/command";

/** Has no change of an install carried out, and says why. */
export default function Pause({ install, onClose }: { install: string; onClose: () => void }) {
  const cache = useQueryClient();
  const [reason, setReason] = useState("");
  const act = async () => {
    if (!reason.trim()) throw new Error("say why: those who wait will read it");
    await ok(berth.POST("/installs/{install}/pause", { params: { path: { install } }, body: { reason: reason.trim() } }));
    await cache.invalidateQueries({ queryKey: ["/installs/{install}/status"] });
  };
  return (
    <Confirm
      title={`Pause ${install}`}
      verb="Pause install"
      command={`berth installs pause ${word(install)} --reason ${word(reason.trim() || "TEXT")}`}
      act={act}
      onClose={onClose}
    >
      <p>No change is carried out until somebody resumes it. What runs already ends; plans, checks and drift go on.</p>
      <label className="mt-3 flex flex-col gap-1">
        <span>Why? Those who wait will read it.</span>
        <input
          value={reason}
          maxLength={500}
          onChange={(e) => setReason(e.target.value)}
          className="h-9 rounded-md border border-line-strong bg-ground px-2"
        />
      </label>
    </Confirm>
  );
}
