import type { StorageWrite, StoredState } from '../../../raft/index.ts';

export const EMPTY_DISK: StoredState = {
  hardState: { term: 0, votedFor: null, commit: 0 },
  snapshot: null,
  entries: [],
};

/** What a disk holds after a batch: the storage contract as one pure function. */
export function afterWrite(before: StoredState, batch: StorageWrite): StoredState {
  const snapshot = batch.snapshot ?? before.snapshot;
  let { entries } = before;
  if (batch.snapshot !== null) {
    const { index, term } = batch.snapshot.meta;
    const same =
      index === before.snapshot?.meta.index || entries.find((entry) => entry.index === index)?.term === term;
    entries = same ? entries.filter((entry) => entry.index > index) : [];
  }
  const first = batch.entries[0];
  if (first !== undefined) {
    const next = (snapshot?.meta.index ?? 0) + entries.length + 1;
    if (first.index > next) throw new Error(`append at ${first.index} leaves a gap after ${next - 1}`);
    entries = [...entries.filter((entry) => entry.index < first.index), ...batch.entries];
  }
  return { hardState: batch.hardState ?? before.hardState, snapshot, entries };
}
