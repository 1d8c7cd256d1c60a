import { expect, it } from 'vitest';
import { ShardQueue } from '../../../src/control/shard-queue.ts';

it('gives shards out once each, the first come first, and takes them again once they were given out', () => {
  const queue = new ShardQueue();
  for (const number of [3, 1, 3, 2]) queue.add(`stream:s/${number}`);
  expect(queue.take(2)).toEqual(['stream:s/3', 'stream:s/1']);
  queue.add('stream:s/2');
  queue.add('stream:s/3');
  expect(queue.take(5)).toEqual(['stream:s/2', 'stream:s/3']);
  expect(queue.take(5)).toEqual([]);
});

it('forgets what it is told to', () => {
  const queue = new ShardQueue();
  for (const number of [1, 2, 3, 4]) queue.add(`stream:s/${number}`);
  queue.take(1);
  queue.clear();
  expect(queue.take(5)).toEqual([]);
  queue.add('stream:s/2');
  expect(queue.take(5)).toEqual(['stream:s/2']);
});
