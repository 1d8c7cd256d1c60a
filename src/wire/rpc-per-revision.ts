import type { Clock } from '../../raft/index.ts';
import type { StateView } from '../state/index.ts';

/**
 * What walks the whole state is taken once a revision, however often it is asked for, and in slices, once for all who ask
 * meanwhile. The value must not be changed.
 */
export function perRevisionInSlices<T>(
  take: (state: StateView, clock: Clock) => Promise<T>,
): (state: StateView, clock: Clock) => Promise<T> {
  const taken = new WeakMap<StateView, { readonly revision: number; readonly value: Promise<T> }>();
  return (state, clock) => {
    const { revision } = state;
    const last = taken.get(state);
    if (last?.revision === revision) return last.value;
    const value = take(state, clock);
    taken.set(state, { revision, value });
    return value;
  };
}

/** Rows of one slice: two or three milliseconds of counting. */
const ROWS_PER_SLICE = 2_000;

/** Looks at each row; between two slices the thread sees to everything else. */
export async function inSlices<Row>(
  rows: readonly Row[],
  clock: Clock,
  each: (row: Row) => void,
  rowsPerSlice = ROWS_PER_SLICE,
): Promise<void> {
  for (let at = 0; at < rows.length; at += rowsPerSlice) {
    if (at > 0) await new Promise<void>((resolve) => clock.defer(resolve));
    for (const row of rows.slice(at, at + rowsPerSlice)) each(row);
  }
}

/** Carries work out to its end, a step a turn. */
export async function inTurns<T>(steps: Generator<void, T, void>, clock: Clock): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise<void>((resolve) => clock.defer(resolve));
  }
}
