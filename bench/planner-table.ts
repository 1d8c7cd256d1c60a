import { shardCount, type Layout } from './planner-layouts.ts';
import type { Used } from './planner-timing.ts';

/** A pass made in the process itself. */
export interface PassRow extends Used {
  readonly kind: 'pass';
  readonly name: string;
  readonly steps: number;
  readonly leastMoves: number | null;
}

/** The same pass made in the planner's thread: what it held the other one up by. */
export interface StopRow {
  readonly kind: 'stop';
  readonly name: string;
  readonly roundTripMs: number;
  readonly stopMs: number;
  readonly p99Ms: number;
  /** Of both threads together. */
  readonly peakMib: number;
}

export interface PlacerRow {
  readonly kind: 'placer';
  readonly placer: string;
  /** `null`: above. */
  readonly cpuMs: number | null;
  /** Fewest and most of a broker. */
  readonly copies: readonly [number, number];
  readonly leaders: readonly [number, number];
  /** Leaders of one resource on two brokers, at most. */
  readonly apart: number;
  readonly movesToJoin: number | null;
  readonly movesToLevel: number | null;
}

export interface Measured {
  readonly layout: Layout;
  readonly rows: readonly (PassRow | StopRow | PlacerRow)[];
}

/** Both tables of one layout; `before` is the next smaller one, for the growth. */
export function printTables({ layout, rows }: Measured, before: Measured | null): void {
  console.log(`\n### ${layout.name}\n`);
  console.log(
    '| pass | time | CPU | grows as shards to the power | peak memory | through the thread | peak memory then | longest stop of the main thread (p99) | steps | fewest leadership moves |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const row of rows) {
    if (row.kind !== 'pass') continue;
    const stop = rows.find((other) => other.kind === 'stop' && other.name === row.name);
    const cells = [
      row.name,
      ms(row.ms),
      ms(row.cpuMs),
      growth(row, layout, before),
      `${count(row.peakMib)} MiB`,
    ];
    if (stop?.kind === 'stop') {
      const longest = `${ms(stop.stopMs)} (${ms(stop.p99Ms)})`;
      cells.push(ms(stop.roundTripMs), `${count(stop.peakMib)} MiB`, longest);
    } else cells.push('–', '–', '–');
    console.log(`| ${[...cells, count(row.steps), orDash(row.leastMoves)].join(' | ')} |`);
  }
  console.log(
    '\n| placer | CPU | copies per broker | leaders per broker | one resource’s leaders, most apart | leaderships moved when a broker joins | …to level the 5 % skew |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const row of rows) {
    if (row.kind !== 'placer') continue;
    const range = ([least, most]: readonly [number, number]): string => `${count(least)}–${count(most)}`;
    const cpu = row.cpuMs === null ? 'above' : ms(row.cpuMs);
    const cells = [row.placer, cpu, range(row.copies), range(row.leaders), count(row.apart)];
    console.log(`| ${[...cells, orDash(row.movesToJoin), orDash(row.movesToLevel)].join(' | ')} |`);
  }
}

/** The exponent between two sizes, from the CPU of the same pass. */
function growth(row: PassRow, layout: Layout, before: Measured | null): string {
  const smaller = before?.rows.find((other) => other.kind === 'pass' && other.name === row.name);
  if (before === null || smaller?.kind !== 'pass') return '–';
  const power =
    Math.log(row.cpuMs / smaller.cpuMs) / Math.log(shardCount(layout) / shardCount(before.layout));
  return power.toFixed(2);
}

function orDash(n: number | null): string {
  return n === null ? '–' : count(n);
}

function ms(n: number): string {
  if (n >= 1_000) return `${(n / 1_000).toFixed(2)} s`;
  return n > 0 && n < 10 ? `${n.toFixed(2)} ms` : `${Math.round(n)} ms`;
}

function count(n: number): string {
  return Math.round(n).toLocaleString('en-US');
}
