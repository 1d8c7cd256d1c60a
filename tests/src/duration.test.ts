import { expect, test } from 'vitest';
import { durationText } from '../../src/duration.ts';

test.each([
  [0, '0 s'],
  [450, '0.4 s'],
  [9_990, '9.9 s'],
  [59_999, '59 s'],
  [260_000, '4 m 20 s'],
  [3_600_000, '1 h 0 m'],
  [93_600_000, '1 d 2 h'],
])('%i ms is %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
