import { expect, test } from 'vitest';
import { MemoryStorage, RaftInvariantError } from '../../raft/index.ts';
import { describeStorage } from './storage-conformance.ts';

describeStorage('MemoryStorage', () => {
  const storage = new MemoryStorage();
  return Promise.resolve({ open: () => Promise.resolve(storage), cleanUp: () => Promise.resolve() });
});

test('a gap, a write before load and a write after close are faults of ours', async () => {
  const storage = new MemoryStorage();
  const write = (index: number) => () =>
    storage.write({
      hardState: null,
      entries: [{ index, term: 1, kind: 'command', data: new Uint8Array(1) }],
      snapshot: null,
      compactTo: 0,
    });
  expect(write(1)).toThrow(RaftInvariantError);
  await storage.load();
  expect(write(2)).toThrow(/append at 2/);
  await storage.close();
  expect(write(1)).toThrow(/before load or after close/);
});
