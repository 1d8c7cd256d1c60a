import type { Fault } from '../fault.ts';

export const LOG: readonly Fault[] = [
  {
    what: 'the mark is not lowered before entries go',
    file: 'src/log/log-storage.ts',
    find: 'await this.#lowerMark(batch, tail);',
    replace: '',
    tests: ['tests/src/log/log-storage.test.ts', 'tests/src/log/crash-points.test.ts'],
  },
  {
    what: 'the last of the entries that were cut off stays',
    file: 'src/log/log-storage.ts',
    find: 'index <= oldLast; index += 1',
    replace: 'index < oldLast; index += 1',
    tests: ['tests/src/log/log-storage.test.ts', 'tests/src/log/crash-points.test.ts'],
  },
  {
    what: 'an entry behind an installed snapshot stays',
    file: 'src/log/log-storage.ts',
    find: 'for (let entry = index + 1; entry <= tail.lastIndex',
    replace: 'for (let entry = index + 2; entry <= tail.lastIndex',
    tests: ['tests/src/log/log-storage.test.ts', 'tests/src/log/crash-points.test.ts'],
  },
  {
    what: 'chunks that a crash left are never removed',
    file: 'src/log/snapshot-chunks.ts',
    find: 'gte: chunkKey(id + 1, 0)',
    replace: 'gte: chunkKey(id + 2, 0)',
    tests: ['tests/src/log/log-storage.test.ts', 'tests/src/log/crash-points.test.ts'],
  },
  {
    what: 'a lost vote goes unnoticed',
    file: 'src/log/mark.ts',
    find: 'mark.votedFor !== null && votedFor !== mark.votedFor',
    replace: 'mark.votedFor === votedFor && votedFor !== mark.votedFor',
    tests: [
      'tests/src/log/log-storage.test.ts',
      'tests/src/log/crash-points.test.ts',
      'tests/src/log/data-directory.test.ts',
    ],
  },
  {
    what: 'covered entries of an earlier process are never deleted',
    file: 'src/log/covered-entries.ts',
    find: 'row === undefined ? base + 1 : readEntryIndex(row[0])',
    replace: 'row === undefined ? base + 1 : Math.max(base + 1, readEntryIndex(row[0]))',
    tests: ['tests/src/log/covered-entries.test.ts', 'tests/src/log/log-storage.test.ts'],
  },
  {
    what: 'the log is written after a failed write',
    file: 'src/log/log-storage.ts',
    find: 'this.#failure = error instanceof Error ? error : new Error(String(error));',
    replace: '',
    tests: ['tests/src/log/log-storage.test.ts', 'tests/src/log/crash-points.test.ts'],
  },
  {
    what: 'the end of a run loses the last raises of the mark',
    file: 'src/log/mark.ts',
    find: 'if (this.#failure === null && this.#unsynced > 0) await this.#write(this.#value, true);',
    replace: '',
    tests: [
      'tests/src/log/log-storage.test.ts',
      'tests/src/log/crash-points.test.ts',
      'tests/src/log/data-directory.test.ts',
    ],
  },
];
