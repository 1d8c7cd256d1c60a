import { applyAll } from './apply-all.ts';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { Machine } from '../../src/apply/index.ts';
import { ChangeRing } from '../../src/watch/index.ts';
import { Dice } from './dice.ts';
import { Harness } from '../src/apply/harness.ts';
import { prepare, runScript, scriptArbitrary } from '../src/apply/script.ts';

/**
 * Applies logs, the same at every run of this program, and prints digests of their snapshots and state hashes.
 * With a seed as argument every Map and Set is walked in an order drawn by it. On stderr: the offset of the time
 * zone, a number as this locale writes it, and the order in which eight keys of a Map came.
 */
const RUNS = 40;
const SCRIPT_SEED = 22;

function walkInDrawnOrder(dice: Dice): void {
  function drawn<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, at: dice.below(1_000_000) }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
  type AnyMap = Map<unknown, unknown>;
  const entriesOf = Reflect.get(Map.prototype, 'entries') as (this: AnyMap) => Iterable<[unknown, unknown]>;
  const valuesOf = Reflect.get(Set.prototype, 'values') as (this: Set<unknown>) => Iterable<unknown>;
  const all = (map: AnyMap): [unknown, unknown][] => drawn([...entriesOf.call(map)]);
  const entries = function (this: AnyMap) {
    return all(this)[Symbol.iterator]();
  };
  const keys = function (this: AnyMap) {
    return all(this)
      .map(([key]) => key)
      .values();
  };
  const values = function (this: AnyMap) {
    return all(this)
      .map(([, value]) => value)
      .values();
  };
  const forEach = function (this: AnyMap, visit: (value: unknown, key: unknown) => void) {
    for (const [key, value] of all(this)) visit(value, key);
  };
  Object.assign(Map.prototype, { entries, keys, values, forEach, [Symbol.iterator]: entries });
  const walk = function (this: Set<unknown>) {
    return drawn([...valuesOf.call(this)])[Symbol.iterator]();
  };
  Object.assign(Set.prototype, { values: walk, keys: walk, [Symbol.iterator]: walk });
}

const logs = fc.sample(scriptArbitrary, { numRuns: RUNS, seed: SCRIPT_SEED }).map((script) => {
  const harness = new Harness();
  prepare(harness);
  runScript(harness, script);
  return harness.log;
});
const seed = process.argv[2];
if (seed !== undefined) walkInDrawnOrder(new Dice(Number(seed)));
for (const log of logs) {
  // Through a snapshot half-way, so that what is read back counts too.
  const half = Math.floor(log.length / 2);
  const first = new Machine(new ChangeRing());
  applyAll(first, log.slice(0, half));
  const second = new Machine(new ChangeRing());
  second.restore(first.snapshot(), half);
  applyAll(second, log.slice(half));
  const digests = [first, second].map((machine) =>
    createHash('sha256').update(machine.snapshot()).digest('hex'),
  );
  process.stdout.write(`${digests.join(' ')} ${second.view.stateHash}\n`);
}
const order = [...new Map([1, 2, 3, 4, 5, 6, 7, 8].map((n) => [n, n])).keys()].join('');
process.stderr.write(JSON.stringify([new Date(0).getTimezoneOffset(), (0.5).toLocaleString(), order]));
