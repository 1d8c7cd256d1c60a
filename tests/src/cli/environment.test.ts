import { expect, test, vi } from 'vitest';
import { processEnvironment } from '../../../src/cli/environment.ts';

test('a note cannot steer the terminal', () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  processEnvironment().note('kept \u001b]0;x\u0007b1: \u202eno\nnext\n');
  const [[written]] = write.mock.calls as [[string]];
  write.mockRestore();
  expect(written).toBe('kept \\u001b]0;x\\u0007b1: \\u202eno\nnext\n');
});
