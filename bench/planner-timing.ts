import { readFileSync, writeFileSync } from 'node:fs';

export interface Used {
  readonly ms: number;
  /** Of this process, its collector's threads included: on a busy machine it says more than the time. */
  readonly cpuMs: number;
  readonly peakMib: number;
}

export function timed<T>(run: () => T): Used & { readonly value: T } {
  globalThis.gc?.();
  resetPeak();
  const began = performance.now();
  const before = process.cpuUsage();
  const value = run();
  const { user, system } = process.cpuUsage(before);
  return { value, ms: performance.now() - began, cpuMs: (user + system) / 1_000, peakMib: peakMib() };
}

/** Of the whole process, from here on. Linux only. */
export function resetPeak(): void {
  writeFileSync('/proc/self/clear_refs', '5');
}

export function peakMib(): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1]) / 1_024;
}
