/** Where a shard's log ends. */
export interface LogPosition {
  /** Epoch of the last record; 0: the log is empty. */
  readonly lastEpoch: number;
  /** Offset after the last record. */
  readonly end: number;
}

/** Whether a log that ends at `a` may hold records that one ending at `b` lacks, as Raft compares logs (paper, section 5.4.1). */
export function isAhead(a: LogPosition, b: LogPosition): boolean {
  return a.lastEpoch === b.lastEpoch ? a.end > b.end : a.lastEpoch > b.lastEpoch;
}
