import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLinearizable, type Operation } from './linearizability.ts';
import { registerModel, type RegisterInput, type RegisterOutput } from './register.ts';

type RegisterOperation = Operation<RegisterInput, RegisterOutput>;

function operation(
  client: string,
  span: readonly [number, number | null],
  input: RegisterInput,
  output: RegisterOutput,
  key = 'r',
): RegisterOperation {
  const [calledAt, at] = span;
  return { client, key, input, calledAt, returned: at === null ? null : { at, output } };
}

const write = (client: string, span: readonly [number, number | null], value: string, key = 'r') =>
  operation(client, span, { type: 'write', value }, { type: 'write' }, key);
const read = (client: string, span: readonly [number, number | null], value: string | null, key = 'r') =>
  operation(client, span, { type: 'read' }, { type: 'read', value }, key);
const cas = (
  client: string,
  span: readonly [number, number | null],
  from: string,
  to: string,
  swapped: boolean,
) => operation(client, span, { type: 'cas', from, to }, { type: 'cas', swapped });

const judge = (history: readonly RegisterOperation[]) => checkLinearizable(history, registerModel);

describe('checkLinearizable', () => {
  it('takes an empty history and a sequential one', () => {
    expect(judge([]).ok).toBe(true);
    expect(judge([read('a', [0, 1], null), write('a', [2, 3], 'x'), read('b', [4, 5], 'x')]).ok).toBe(true);
  });

  it('refuses a read that misses a write acknowledged before it was asked', () => {
    const verdict = judge([write('a', [0, 1], 'x'), write('a', [2, 3], 'y'), read('b', [4, 5], 'x')]);
    expect(verdict).toEqual({
      ok: false,
      key: 'r',
      report: [
        'not linearizable: key r, 3 operations',
        'longest order found, 2 operations, its end:',
        '  [0, 1] a: write x → done  → =x',
        '  [2, 3] a: write y → done  → =y',
        'cannot follow:',
        '  [4, 5] b: read → x',
      ].join('\n'),
    });
  });

  it('lets concurrent operations take effect in any order, but one for all readers', () => {
    const writes = [write('a', [0, 10], 'x'), write('b', [0, 10], 'y')];
    expect(judge([...writes, read('c', [11, 12], 'x')]).ok).toBe(true);
    expect(judge([...writes, read('c', [11, 12], 'y')]).ok).toBe(true);
    expect(judge([...writes, read('c', [11, 12], 'x'), read('d', [13, 14], 'y')]).ok).toBe(false);
    expect(
      judge([...writes, read('c', [1, 2], 'x'), read('d', [3, 4], 'y'), read('d', [5, 6], 'y')]).ok,
    ).toBe(true);
    expect(
      judge([...writes, read('c', [1, 2], 'x'), read('d', [3, 4], 'y'), read('d', [5, 6], 'x')]).ok,
    ).toBe(false);
  });

  it('an unknown outcome may take effect late or never, not before its call, and not twice', () => {
    const open = write('a', [5, null], 'x');
    expect(judge([open, read('b', [6, 7], null)]).ok).toBe(true);
    expect(judge([open, read('b', [6, 7], null), read('b', [100, 101], 'x')]).ok).toBe(true);
    expect(judge([open, read('b', [1, 2], 'x')]).ok).toBe(false);
    const twice = [open, read('b', [6, 7], 'x'), write('b', [8, 9], 'y'), read('b', [10, 11], 'x')];
    expect(judge(twice).ok).toBe(false);
  });

  it('judges compare-and-set, whether it swapped, did not, or nobody knows', () => {
    const begin = write('a', [0, 1], 'x');
    expect(judge([begin, cas('a', [2, 3], 'x', 'y', true), read('a', [4, 5], 'y')]).ok).toBe(true);
    expect(judge([begin, cas('a', [2, 3], 'x', 'y', false)]).ok).toBe(false);
    expect(judge([begin, cas('a', [2, 3], 'z', 'y', true)]).ok).toBe(false);
    expect(
      judge([begin, cas('a', [2, null], 'x', 'y', true), read('b', [4, 5], 'y'), read('b', [6, 7], 'y')]).ok,
    ).toBe(true);
    expect(judge([begin, cas('a', [2, 9], 'x', 'y', true), cas('b', [2, 9], 'x', 'z', true)]).ok).toBe(false);
  });

  it('judges every key by itself and names the one that broke', () => {
    const good = [write('a', [0, 1], 'x', 'good'), read('a', [2, 3], 'x', 'good')];
    const bad = [write('a', [0, 1], 'x', 'bad'), read('a', [2, 3], null, 'bad')];
    expect(judge([...good, ...bad])).toMatchObject({ ok: false, key: 'bad' });
  });

  it('counts operations that touch in time as concurrent', () => {
    expect(judge([write('a', [0, 5], 'x'), read('b', [5, 6], null)]).ok).toBe(true);
  });

  it('refuses a history that is none', () => {
    expect(() => judge([write('a', [5, 4], 'x')])).toThrow('returns before its call');
  });
});

/** A history made by running a register at chosen instants: linearizable by construction. */
const trueHistory = fc
  .array(
    fc.record({
      client: fc.integer({ min: 0, max: 3 }),
      input: fc.oneof(
        fc.constant({ type: 'read' } as const),
        fc.record({ type: fc.constant('write' as const), value: fc.constantFrom('1', '2', '3') }),
        fc.record({
          type: fc.constant('cas' as const),
          from: fc.constantFrom('1', '2'),
          to: fc.constantFrom('2', '3'),
        }),
      ),
      early: fc.nat(30),
      late: fc.nat(30),
      known: fc.integer({ min: 0, max: 9 }),
    }),
    { minLength: 1, maxLength: 25 },
  )
  .map((steps) => {
    let state: string | null = null;
    return steps.map((step, index): RegisterOperation => {
      const instant = index * 10 + 40;
      const { input } = step;
      let output: RegisterOutput = { type: 'write' };
      if (input.type === 'read') output = { type: 'read', value: state };
      if (input.type === 'write') state = input.value;
      if (input.type === 'cas') {
        output = { type: 'cas', swapped: state === input.from };
        if (state === input.from) state = input.to;
      }
      const end = step.known === 0 ? null : instant + step.late;
      return operation(`c${step.client}`, [instant - step.early, end], input, output);
    });
  });

/** By definition: some order of the operations that respects time is right. Only for short histories. */
function bruteForce(left: readonly RegisterOperation[], state: string | null): boolean {
  if (left.every((candidate) => candidate.returned === null)) return true;
  return left.some((candidate) => {
    const mayBeFirst = left.every(
      (other) => other.returned === null || other.returned.at >= candidate.calledAt,
    );
    if (!mayBeFirst) return false;
    const after = registerModel.step(state, candidate.input, candidate.returned?.output ?? null);
    return (
      after !== undefined &&
      bruteForce(
        left.filter((other) => other !== candidate),
        after.state,
      )
    );
  });
}

describe('checkLinearizable, by property', () => {
  it('accepts every history that a register could have produced', () => {
    fc.assert(
      fc.property(trueHistory, (history) => judge(history).ok),
      { numRuns: 500 },
    );
  });

  it('agrees with trying every order, on short histories with a read changed', () => {
    let refused = 0;
    fc.assert(
      fc.property(trueHistory, fc.nat(), fc.constantFrom('1', '2', '3'), (made, at, value) => {
        const history = made.slice(0, 7);
        const reads = history.filter((item) => item.input.type === 'read' && item.returned !== null);
        const victim = reads[at % Math.max(1, reads.length)];
        const changed = history.map((item) =>
          item === victim && item.returned !== null
            ? { ...item, returned: { at: item.returned.at, output: { type: 'read' as const, value } } }
            : item,
        );
        const expected = bruteForce(changed, null);
        if (!expected) refused++;
        return judge(changed).ok === expected;
      }),
      { numRuns: 1_000 },
    );
    // A checker that always says yes would pass without histories that are wrong.
    expect(refused).toBeGreaterThan(50);
  });
});

const PORCUPINE = join(import.meta.dirname, '../../../shared/peer-data/porcupine');

/** Jepsen's log of one register: process, `:invoke`, `:ok`, `:fail` or `:info`, function, value. */
function parseJepsen(text: string): RegisterOperation[] {
  const operations: RegisterOperation[] = [];
  const open = new Map<string, { input: RegisterInput; calledAt: number }>();
  for (const [at, line] of text.split('\n').entries()) {
    const match = /(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*)$/.exec(line);
    if (match === null) continue;
    const [, client, type, name, value] = match as unknown as [string, string, string, string, string];
    if (type === 'invoke') {
      const [from = '', to = ''] = value.replace(/[[\]]/g, '').split(' ');
      const input: RegisterInput =
        name === 'read'
          ? { type: 'read' }
          : name === 'write'
            ? { type: 'write', value: from }
            : { type: 'cas', from, to };
      open.set(client, { input, calledAt: at });
      continue;
    }
    const call = open.get(client);
    if (call === undefined) throw new Error(`line ${at + 1}: no call to answer`);
    open.delete(client);
    // A read that failed saw nothing and did nothing; a compare-and-set that failed saw another value.
    if (type === 'fail' && name !== 'cas') continue;
    const output: RegisterOutput =
      name === 'read'
        ? { type: 'read', value: value === 'nil' ? null : value }
        : name === 'write'
          ? { type: 'write' }
          : { type: 'cas', swapped: type === 'ok' };
    operations.push({ client, key: 'r', ...call, returned: type === 'info' ? null : { at, output } });
  }
  for (const [client, call] of open) operations.push({ client, key: 'r', ...call, returned: null });
  return operations;
}

describe.skipIf(!existsSync(PORCUPINE))(
  'histories of etcd with known verdicts (skipped: ../shared/peer-data/porcupine is absent)',
  () => {
    const verdicts = existsSync(PORCUPINE)
      ? (JSON.parse(readFileSync(join(PORCUPINE, 'verdicts.json'), 'utf8')) as Record<string, boolean>)
      : {};

    // One log of the collection is empty and has no verdict.
    it('agrees on all 102', () => {
      const wrong = Object.entries(verdicts).filter(([name, linearizable]) => {
        const history = parseJepsen(readFileSync(join(PORCUPINE, name), 'utf8'));
        expect(history.length).toBeGreaterThan(0);
        return judge(history).ok !== linearizable;
      });
      expect(wrong).toEqual([]);
      expect(Object.keys(verdicts).length).toBe(102);
    });
  },
);
