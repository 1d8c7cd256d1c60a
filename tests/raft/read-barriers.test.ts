import { expect, test } from 'vitest';
import { ReadBarriers } from '../../raft/read-barriers.ts';

test('a read waits until its index is applied; one that asks for the index alone does not', async () => {
  const barriers = new ReadBarriers();
  const ended: string[] = [];
  const note = (name: string) => (index: number) => void ended.push(`${name} ${index}`);
  const read = barriers.add(1_000).then(note('read'));
  const round = barriers.add(1_000, false).then(note('round'));
  const key = barriers.ask();
  if (key === null) throw new Error('nothing is asked');
  barriers.answered({ key, index: 9 });
  await round;
  barriers.applied(8);
  expect(ended).toEqual(['round 9']);
  expect(barriers.size).toBe(1);
  barriers.applied(9);
  await read;
  expect(ended).toEqual(['round 9', 'read 9']);
  expect(barriers.size).toBe(0);
});

test('what asks for the index alone asks again where the attempt failed, until its deadline', async () => {
  const barriers = new ReadBarriers();
  const round = barriers.add(1_000, false);
  const key = barriers.ask();
  barriers.answered({ key: key ?? 0, index: null });
  expect(barriers.retry()).toBe(true);
  expect(barriers.ask()).not.toBeNull();
  barriers.expire(1_000);
  await expect(round).rejects.toMatchObject({ code: 'deadlineExceeded' });
  expect(barriers.size).toBe(0);
});
