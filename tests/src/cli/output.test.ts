import { expect, test } from 'vitest';
import { render, table } from '../../../src/cli/output.ts';

test('a cell cannot forge a row, steer the terminal or turn text around', () => {
  const text = table(
    [{ name: 'LABEL', cell: (row: string) => row }],
    ['a\nb2  live', '\u001b]0;x\u0007', '\u202e'],
  );
  expect(text.split('\n')).toHaveLength(4);
  expect(text).toContain('a\\u000ab2  live');
  expect(text).toContain('\\u001b]0;x\\u0007');
  expect(text).toContain('\\u202e');
});

test('what stands around tables is escaped too, line by line', () => {
  const view = { data: null, text: () => 'why: \u009b2J\nnext' };
  expect(render(view, 'table')).toBe('why: \\u009b2J\nnext\n');
});
