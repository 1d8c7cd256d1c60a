import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { gauge } from './metrics-gauge.ts';

const LOOP_RESOLUTION_MS = 10;
const LOOP_QUANTILES = ['0.5', '0.99', '0.999'];
const NS_PER_SECOND = 1e9;
const MS_PER_SECOND = 1_000;

/** What is measured of the process that a node runs in: memory, garbage collection, the event loop's delay. */
export interface ProcessMetrics {
  exposition(): Promise<string>;
}

/**
 * Once a process, however many nodes it runs: what it starts (a timer every 10 ms, an observer of garbage collection) runs
 * as long as the process does.
 */
export function createProcessMetrics(node: string): ProcessMetrics {
  const registry = new Registry();
  registry.setDefaultLabels({ node });
  collectDefaultMetrics({ register: registry });
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  addLoop(registry, loop);
  return { exposition: () => registry.metrics() };
}

function addLoop(registry: Registry, loop: IntervalHistogram): void {
  const described = {
    name: 'event_loop_delay_seconds',
    help: 'How much later than due the event loop ran a timer, since the last scrape',
    labelNames: ['quantile'],
  };
  gauge(registry, described, () => {
    const rows = LOOP_QUANTILES.map(
      (quantile) => [{ quantile }, loop.percentile(Number(quantile) * 100)] as const,
    );
    const all = [...rows, [{ quantile: '1' }, loop.max] as const];
    loop.reset();
    // What is measured is the time between two runs of a timer, its own period included.
    return all.map(([labels, ns]) => [
      labels,
      Math.max(0, ns / NS_PER_SECOND - LOOP_RESOLUTION_MS / MS_PER_SECOND),
    ]);
  });
}
