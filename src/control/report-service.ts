import type { Command, RowResult } from '../command/index.ts';
import type { AssignmentRow, StateView } from '../state/index.ts';
import { sign } from './broker-service.ts';
import { sameCopies } from './reports.ts';
import type {
  ConfirmParams,
  ReportParams,
  ShardReportParams,
  ShardResult,
  ShardResults,
} from '../broker-services.ts';
import type { Tenure } from './tenure.ts';

const SHARD_RESULTS: readonly ShardResult[] = ['accepted', 'stale', 'not_leader', 'unknown_shard'];
/** Most shards of one entry. */
const SHARDS_PER_ENTRY = 500;

/**
 * What a broker says of the shards it leads. Offsets stay in memory and are answered at once; a change of
 * `inSync` and `drained` go through the log and are answered once applied, each shard by itself.
 */
export async function report(tenure: Tenure, state: StateView, params: ReportParams): Promise<ShardResults> {
  sign(tenure, state, params);
  const { broker, incarnation } = params;
  const results = new Map<number, ShardResult>();
  const changes: { at: number; shard: ShardReportParams }[] = [];
  let matters = false;
  params.shards.forEach((shard, at) => {
    const checked = check(state, broker, shard);
    if (typeof checked === 'string') {
      results.set(at, checked);
      return;
    }
    const options = {
      destination: checked.move === null ? undefined : state.brokers.get(checked.move.to),
      nowMs: tenure.nowMs(),
      policy: state.policy,
    };
    if (tenure.reports.note(shard, checked, options)) matters = true;
    const changesSet = shard.inSync !== null && !sameCopies(shard.inSync, checked.inSync);
    if (changesSet || (shard.drained && !checked.drained)) changes.push({ at, shard });
    else results.set(at, 'accepted');
  });
  if (matters) tenure.passes.wake();
  for (let i = 0; i < changes.length; i += SHARDS_PER_ENTRY) {
    const part = changes.slice(i, i + SHARDS_PER_ENTRY);
    const shards = part.map(({ shard: { shard, generation, inSync, drained } }) => ({
      shard,
      generation,
      inSync,
      drained,
    }));
    const rows = await write(tenure, { type: 'report', broker, incarnation, shards });
    part.forEach(({ at }, n) => results.set(at, resultOf(rows[n])));
  }
  return inOrder(params.shards, results);
}

/** The named leader serves now. Only what waits for it goes through the log. */
export async function confirm(
  tenure: Tenure,
  state: StateView,
  params: ConfirmParams,
): Promise<ShardResults> {
  sign(tenure, state, params);
  const { broker, incarnation } = params;
  const results = new Map<number, ShardResult>();
  const waiting: number[] = [];
  params.shards.forEach((shard, at) => {
    const checked = check(state, broker, shard);
    if (typeof checked === 'string') results.set(at, checked);
    else waiting.push(at);
  });
  for (let i = 0; i < waiting.length; i += SHARDS_PER_ENTRY) {
    const part = waiting.slice(i, i + SHARDS_PER_ENTRY);
    const shards = part.flatMap((at) => params.shards[at] ?? []);
    const rows = await write(tenure, { type: 'confirm', broker, incarnation, shards });
    part.forEach((at, n) => results.set(at, resultOf(rows[n])));
  }
  return inOrder(params.shards, results);
}

/** What can be said without the log; what passes is checked again as it is applied. */
function check(
  state: StateView,
  broker: string,
  shard: { readonly shard: string; readonly generation: number },
): AssignmentRow | ShardResult {
  const row = state.assignments.get(shard.shard);
  if (row === undefined) return 'unknown_shard';
  if (row.leader !== broker) return 'not_leader';
  return row.generation === shard.generation ? row : 'stale';
}

async function write(tenure: Tenure, command: Command): Promise<readonly RowResult[]> {
  return (await tenure.propose(command)).value as readonly RowResult[];
}

function resultOf(row: RowResult | undefined): ShardResult {
  const result = SHARD_RESULTS.find((one) => one === row?.result);
  if (result === undefined)
    throw new Error(`a report's row was applied with the result ${row?.result ?? 'missing'}`);
  return result;
}

function inOrder(
  shards: readonly { readonly shard: string }[],
  results: ReadonlyMap<number, ShardResult>,
): ShardResults {
  return {
    results: shards.map(({ shard }, at) => {
      const result = results.get(at);
      if (result === undefined) throw new Error(`${shard}: reported and not answered`);
      return { shard, result };
    }),
  };
}
