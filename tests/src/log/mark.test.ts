import { expect, test } from 'vitest';
import type { Disk, FixedFile } from '../../../src/disk.ts';
import { Mark, type MarkValue } from '../../../src/log/mark.ts';

/** A file that remembers which of its writes were synced. */
function fakeFile(): { disk: Disk; writes: boolean[] } {
  const writes: boolean[] = [];
  const file: FixedFile = {
    read: async () => new Uint8Array(8_192),
    writeAt: async (_offset, _data, { sync }) => void writes.push(sync),
    close: async () => {},
  };
  return { disk: { openFixedFile: async () => file } as unknown as Disk, writes };
}

const at = (lastIndex: number): MarkValue => ({
  ...{ boot: 1, term: 1, votedFor: null },
  ...{ lastIndex, lastTerm: 1, lastCrc: lastIndex },
});

async function turn(): Promise<void> {
  await new Promise<void>((resolve) => void setImmediate(resolve));
}

test('one of 256 raises is synced, so that a power cut takes the mark back by no more', async () => {
  const { disk, writes } = fakeFile();
  const mark = await Mark.open(disk, 'mark', true);
  if (mark === null) throw new Error('a fresh file holds a mark');
  for (let index = 1; index <= 600; index++) {
    mark.raise(at(index));
    await turn();
  }
  expect(writes).toHaveLength(600);
  expect(writes.flatMap((synced, n) => (synced ? [n + 1] : []))).toEqual([256, 512]);
});

test('a mark that was raised is synced as it is closed', async () => {
  const { disk, writes } = fakeFile();
  const mark = await Mark.open(disk, 'mark', true);
  mark?.raise(at(1));
  await turn();
  await mark?.close();
  expect(writes).toEqual([false, true]);
});
