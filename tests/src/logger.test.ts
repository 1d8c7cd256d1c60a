import { expect, test } from 'vitest';
import { createLogger } from '../../src/logger.ts';

test('lines are JSON with node, level, message and the given fields', () => {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    node: 'n1',
    destination: { write: (line) => lines.push(line) },
  });
  logger.child({ part: 'raft' }).info({ term: 3, index: 9 }, 'elected');
  logger.debug({}, 'not at this level');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    node: 'n1',
    level: 'info',
    part: 'raft',
    term: 3,
    index: 9,
    msg: 'elected',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  });
});
