/** A required copy that lacks a record for longer than this is reported as out of sync, ms. */
export const REPLICA_LAG_MS = 10_000;

/** What a leader reads from its assignment row here. Exactly one row of a shard has a given generation. */
export interface InSyncRow {
  readonly generation: number;
  readonly replicas: readonly string[];
  readonly inSync: readonly string[];
}

/** Another broker's copy as the leader knows it. */
export interface CopyState {
  /** The copy holds every record below it on disk; `null` until the copy reaches the leader in this epoch. */
  readonly end: number | null;
  readonly isAttached: boolean;
  /** The copy has lacked a record since then; it has caught up once it holds every record below `until`. */
  readonly lack: { readonly sinceMs: number; readonly until: number } | null;
}

/**
 * Everything a leader needs to decide, within one epoch, which copies must hold a record before it is acknowledged.
 *
 * The control plane applies a report only at the generation that the report names, and each applied change makes a
 * new generation. So of all reports sent at one generation at most one takes effect, and the next generation ends
 * the doubt about all of them.
 */
export interface InSyncState {
  readonly self: string;
  /** The newest row known: from the watch, or from the answer that accepted a report. */
  readonly row: InSyncRow;
  /** The end of the leader's own log. */
  readonly end: number;
  /** Every record below it is acknowledged. It never falls. */
  readonly acknowledged: number;
  readonly copies: ReadonlyMap<string, CopyState>;
  /** The set in the report that waits for its answer. */
  readonly underWay: readonly string[] | null;
  /** Copies outside `row.inSync` that some report at this generation names: it may have been applied. */
  readonly perhapsAdded: readonly string[];
}

export type InSyncEvent =
  /** The watch shows a row of this epoch. */
  | { readonly type: 'row'; readonly row: InSyncRow; readonly nowMs: number }
  /** The leader's log ends there now, on disk. */
  | { readonly type: 'appended'; readonly end: number; readonly nowMs: number }
  /** A copy attached, holding every record below `end` on disk. */
  | { readonly type: 'attached'; readonly copy: string; readonly end: number; readonly nowMs: number }
  | { readonly type: 'acked'; readonly copy: string; readonly end: number; readonly nowMs: number }
  | { readonly type: 'detached'; readonly copy: string }
  /** The copy's broker registered again: what it held before counts for nothing. */
  | { readonly type: 'forgotten'; readonly copy: string; readonly nowMs: number }
  /** A report is about to be sent. */
  | { readonly type: 'reported'; readonly inSync: readonly string[] }
  /** `accepted` is false for every other result, an error, and an answer that never came. */
  | { readonly type: 'answered'; readonly generation: number; readonly accepted: boolean };

const UNKNOWN: CopyState = { end: null, isAttached: false, lack: null };

/** A leader opens the shard with a log that ends at `end`; no copy has reached it yet. */
export function openInSync(options: {
  readonly self: string;
  readonly row: InSyncRow;
  readonly end: number;
  readonly nowMs: number;
}): InSyncState {
  const { self, row, end, nowMs } = options;
  const copies = copiesOf({ self, end, copies: new Map() }, row, nowMs);
  return acknowledge({ self, row, end, acknowledged: 0, copies, underWay: null, perhapsAdded: [] });
}

/** The state after an event. Events about copies that the row does not name change nothing. */
export function afterEvent(state: InSyncState, event: InSyncEvent): InSyncState {
  switch (event.type) {
    case 'row':
      return acknowledge(withRow(state, event.row, event.nowMs));
    case 'appended':
      return acknowledge(withEnd(state, event.end, event.nowMs));
    case 'attached':
      return acknowledge(withCopy(state, event.copy, event, { end: event.end, isAttached: true }));
    case 'acked': {
      const end = Math.max(event.end, state.copies.get(event.copy)?.end ?? 0);
      return acknowledge(withCopy(state, event.copy, event, { end }));
    }
    case 'detached': {
      const copy = state.copies.get(event.copy);
      if (copy === undefined) return state;
      return { ...state, copies: new Map(state.copies).set(event.copy, { ...copy, isAttached: false }) };
    }
    case 'forgotten':
      return withCopy(state, event.copy, event, UNKNOWN);
    case 'reported': {
      const added = event.inSync.filter(
        (id) => !state.row.inSync.includes(id) && !state.perhapsAdded.includes(id),
      );
      return { ...state, underWay: event.inSync, perhapsAdded: [...state.perhapsAdded, ...added] };
    }
    case 'answered':
      return acknowledge(withAnswer(state, event.generation, event.accepted));
  }
}

/**
 * Copies that must hold a record before it is acknowledged: every copy that the control plane counts as in sync, or
 * will if a report that was sent is applied.
 */
export function requiredCopies({ row, perhapsAdded }: InSyncState): readonly string[] {
  return perhapsAdded.length === 0 ? row.inSync : [...row.inSync, ...perhapsAdded];
}

/** Whether the copy is attached and holds every record. */
export function isWhole(state: InSyncState, copy: string): boolean {
  if (copy === state.self) return true;
  const known = state.copies.get(copy);
  return known !== undefined && known.isAttached && known.end === state.end;
}

/**
 * The set to report now, or `null` if nothing has to change or the last report has no answer yet.
 *
 * A report that was lost leaves its copies required until the generation changes. Where nothing else changes it,
 * they are proposed again, whatever they hold by now: they were required all the while, so none lacks an
 * acknowledged record, and once they count as in sync a copy that lags can be taken out.
 */
export function setToReport(state: InSyncState, nowMs: number): readonly string[] | null {
  const { row, self, underWay, perhapsAdded, copies } = state;
  if (underWay !== null) return null;
  const lags = (id: string): boolean => {
    const lack = copies.get(id)?.lack ?? null;
    return lack !== null && nowMs - lack.sinceMs > REPLICA_LAG_MS;
  };
  const added = row.replicas.filter((id) => !row.inSync.includes(id) && isWhole(state, id));
  const kept = row.inSync.filter((id) => id === self || !lags(id));
  if (added.length > 0 || kept.length < row.inSync.length) return [...kept, ...added];
  return perhapsAdded.length > 0 ? requiredCopies(state) : null;
}

function withRow(state: InSyncState, row: InSyncRow, nowMs: number): InSyncState {
  if (row.generation <= state.row.generation) return state;
  return { ...state, row, copies: copiesOf(state, row, nowMs), underWay: null, perhapsAdded: [] };
}

function withEnd(state: InSyncState, end: number, nowMs: number): InSyncState {
  if (end <= state.end) return state;
  const copies = new Map<string, CopyState>();
  for (const [id, copy] of state.copies) copies.set(id, withLack(copy, end, nowMs));
  return { ...state, end, copies };
}

function withCopy(
  state: InSyncState,
  id: string,
  { nowMs }: { readonly nowMs: number },
  patch: Partial<CopyState>,
): InSyncState {
  const before = state.copies.get(id);
  if (before === undefined) return state;
  const copy = withLack({ ...before, ...patch }, state.end, nowMs);
  return { ...state, copies: new Map(state.copies).set(id, copy) };
}

function withAnswer(state: InSyncState, generation: number, accepted: boolean): InSyncState {
  const { row, underWay } = state;
  if (underWay === null || generation !== row.generation) return state;
  const isSame = underWay.length === row.inSync.length && underWay.every((id) => row.inSync.includes(id));
  // A refusal is no proof that no other try of the same report was applied, and the same set makes no generation.
  if (!accepted || isSame) return { ...state, underWay: null };
  const next = { ...row, generation: generation + 1, inSync: underWay };
  return { ...state, row: next, underWay: null, perhapsAdded: [] };
}

function copiesOf(
  { self, copies, end }: Pick<InSyncState, 'self' | 'copies' | 'end'>,
  row: InSyncRow,
  nowMs: number,
): ReadonlyMap<string, CopyState> {
  const kept = new Map<string, CopyState>();
  for (const id of row.replicas) {
    if (id !== self) kept.set(id, copies.get(id) ?? withLack(UNKNOWN, end, nowMs));
  }
  return kept;
}

function withLack(copy: CopyState, end: number, nowMs: number): CopyState {
  const held = copy.end ?? 0;
  if (held >= end) return copy.lack === null ? copy : { ...copy, lack: null };
  if (copy.lack !== null && held < copy.lack.until) return copy;
  return { ...copy, lack: { sinceMs: nowMs, until: end } };
}

function acknowledge(state: InSyncState): InSyncState {
  let { end } = state;
  for (const id of requiredCopies(state)) {
    if (id !== state.self) end = Math.min(end, state.copies.get(id)?.end ?? 0);
  }
  return end > state.acknowledged ? { ...state, acknowledged: end } : state;
}
