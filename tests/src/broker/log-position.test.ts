import { expect, test } from 'vitest';
import { isAhead } from '../../../src/broker/log-position.ts';

test.each([
  [{ lastEpoch: 4, end: 3 }, { lastEpoch: 4, end: 2 }, true],
  [{ lastEpoch: 4, end: 2 }, { lastEpoch: 4, end: 2 }, false],
  [{ lastEpoch: 4, end: 1 }, { lastEpoch: 4, end: 2 }, false],
  [{ lastEpoch: 5, end: 1 }, { lastEpoch: 4, end: 9 }, true],
  [{ lastEpoch: 4, end: 9 }, { lastEpoch: 5, end: 1 }, false],
  [{ lastEpoch: 1, end: 1 }, { lastEpoch: 0, end: 0 }, true],
])('a log that ends at %j is ahead of one that ends at %j: %j', (a, b, ahead) => {
  expect(isAhead(a, b)).toBe(ahead);
});
