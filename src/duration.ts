const MS_PER_SECOND = 1_000;
const SECONDS_PER_MINUTE = 60;
const MINUTES_PER_HOUR = 60;
const HOURS_PER_DAY = 24;

/** A duration for people, in its two largest units: `4 m 20 s`, `3 d 2 h`, `0.4 s`. */
export function durationText(ms: number): string {
  const seconds = ms / MS_PER_SECOND;
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10} s`;
  if (seconds < SECONDS_PER_MINUTE) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / SECONDS_PER_MINUTE);
  if (minutes < MINUTES_PER_HOUR) return `${minutes} m ${Math.floor(seconds % SECONDS_PER_MINUTE)} s`;
  const hours = Math.floor(minutes / MINUTES_PER_HOUR);
  if (hours < HOURS_PER_DAY) return `${hours} h ${minutes % MINUTES_PER_HOUR} m`;
  return `${Math.floor(hours / HOURS_PER_DAY)} d ${hours % HOURS_PER_DAY} h`;
}
