import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonInSlices } from '../../src/json-in-slices.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { StepClock } from '../support/step-clock.ts';

async function written(value: unknown): Promise<{ text: string; turns: number; longest: number }> {
  const clock = new StepClock();
  const pieces = jsonInSlices(value, clock, 2 ** 30);
  const turns = await clock.run();
  const all = (await pieces).pieces;
  return { text: all.join(''), turns, longest: Math.max(...all.map((piece) => piece.length)) };
}

test('is what JSON.stringify writes, however large the parts are', async () => {
  const plain = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, undefined, true, 0, -1.5, Number.NaN, '', 'ä"\\\u2028', '__proto__'),
      fc.array(tie('value'), { maxLength: 6 }),
      fc.dictionary(fc.string({ maxLength: 6 }), tie('value'), { maxKeys: 6 }),
      fc.array(fc.record({ id: fc.nat(), broker: fc.string() }), { minLength: 300, maxLength: 700 }),
    ),
  })).value;
  await fc.assert(
    fc.asyncProperty(plain, async (value) => {
      const wrapped = { value };
      expect((await written(wrapped)).text).toBe(JSON.stringify(wrapped));
    }),
    { numRuns: 300 },
  );
});

test('a short value takes no turn, a long one as many as its text asks for', async () => {
  expect(await written({ items: [1, 2, 3] })).toMatchObject({ turns: 0 });
  const row = { shard: 'stream:orders/0', replicas: ['b1', 'b2', 'b3'], generation: 1, move: null };
  const rows = Array.from({ length: 20_000 }, () => row);
  const { turns, longest, text } = await written({ jsonrpc: '2.0', result: { items: rows } });
  expect(turns).toBeGreaterThanOrEqual(Math.floor(text.length / (130 * 1024)) - 1);
  expect(longest).toBeLessThan(16 * 1024);
  const levels = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, n) => [`stream:s${n}`, { b1: 1, b2: 2 }]),
  );
  expect((await written({ levels })).longest).toBeLessThan(16 * 1024);
});

test('stops at the bytes it may have, and counts them as UTF-8', async () => {
  const clock = new StepClock();
  expect(await jsonInSlices({ a: 'é' }, clock, 10)).toEqual({ pieces: ['{"a":"é"}'], bytes: 10 });
  await expect(jsonInSlices({ a: 'é' }, clock, 9)).rejects.toThrow(EvenkeelError);
});
