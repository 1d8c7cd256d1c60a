import { compareStrings, splitShard } from '../../placement/index.ts';
import type { AssignmentRow } from './types.ts';

/** Rows looked at between two turns: about 2 ms. */
const ROWS_PER_STEP = 5_000;

/** Sorts as `compareShards` would, resource by resource, so that no turn sorts them all. */
export function* inShardOrder(
  rows: readonly AssignmentRow[],
  rowsPerStep = ROWS_PER_STEP,
): Generator<void, AssignmentRow[], void> {
  const groups = new Map<string, { readonly number: number; readonly row: AssignmentRow }[]>();
  for (const [i, row] of rows.entries()) {
    const { resource, number } = splitShard(row.shard);
    const group = groups.get(resource);
    if (group === undefined) groups.set(resource, [{ number, row }]);
    else group.push({ number, row });
    if (i % rowsPerStep === rowsPerStep - 1) yield;
  }
  const keys = [...groups.keys()].sort(compareStrings);
  yield;
  const sorted: AssignmentRow[] = [];
  let next = rowsPerStep;
  for (const key of keys) {
    for (const { row } of (groups.get(key) ?? []).sort((x, y) => x.number - y.number)) sorted.push(row);
    if (sorted.length < next) continue;
    next = sorted.length + rowsPerStep;
    yield;
  }
  return sorted;
}
