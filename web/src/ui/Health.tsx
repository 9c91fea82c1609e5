import type { ReactNode } from "react";

export type Verdict = "absent" | "unknown" | "healthy" | "unhealthy";

const looks: Record<Verdict, string> = {
  healthy: "h-full bg-good",
  unhealthy: "h-1/2 bg-bad",
  unknown: "h-1/4 bg-line-strong",
  absent: "h-px bg-line",
};

/** How healthy something was, part by part: height and colour say the same. A flat one is a line of a list. */
export function HealthStrip({ strip, label, flat = false }: { strip: readonly Verdict[]; label: ReactNode; flat?: boolean }) {
  return (
    <div className={flat ? "flex min-w-0 items-center gap-3" : ""}>
      <div aria-hidden="true" className={`flex items-end gap-px ${flat ? "h-4 min-w-0 flex-1" : "h-8"}`}>
        {strip.map((verdict, i) => (
          <span key={i} className={`min-w-px flex-1 rounded-[1px] ${looks[verdict]}`} title={verdict} />
        ))}
      </div>
      <p className={`text-xs text-dim tabular-nums ${flat ? "w-28 text-right" : "mt-1"}`}>{label}</p>
    </div>
  );
}

// Unlike the bars of a long strip these are a fixed size: height and tone of each verdict.
const bars: Record<Verdict, readonly [height: number, tone: string]> = {
  healthy: [14, "fill-good"],
  unhealthy: [7, "fill-bad"],
  unknown: [4, "fill-line-strong"],
  absent: [1, "fill-line"],
};

/** A strip of a few parts as one small picture: a path for each verdict, so that hundreds of them are few nodes. */
export function HealthBars({ strip }: { strip: readonly Verdict[] }) {
  return (
    <svg width={strip.length * 5 - 1} height={14} aria-hidden="true" className="shrink-0">
      {(Object.keys(bars) as Verdict[]).map((verdict) => {
        const [height, tone] = bars[verdict];
        const d = strip.map((v, i) => (v === verdict ? `M${i * 5} ${14 - height}h4v${height}h-4z` : "")).join("");
        return d && <path key={verdict} d={d} className={tone} />;
      })}
    </svg>
  );
}

/** Which share of the known time was healthy, cut and not rounded: 99.999 % is not 100 %. */
export function share({ availability }: { availability?: number }): string {
  return availability === undefined ? "nothing is known" : `${Math.floor(availability * 10000) / 100} % healthy`;
}
