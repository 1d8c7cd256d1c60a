import {
  assignmentRow,
  splitShard,
  type Assignment,
  type MoveRequest,
  type OperatorAnswer,
  type Step,
} from '../../placement/index.ts';
import type { RowResult } from '../command/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import type { Decision, StateView } from '../state/index.ts';
import { rowOf } from './placement-rows.ts';
import type { Stuck } from './inactive-shards.ts';
import type { Tenure } from './tenure.ts';
import { silenceUntilFreeMs, type BrokerTimings } from './timings.ts';

/** `placement.status`: how far the cluster is from level, by the last pass. */
export interface PlacementStatus {
  readonly paused: boolean;
  /** Nothing is wanted of the state as it is, and nothing is under way. */
  readonly level: boolean;
  /** `null`: not known yet, or no minimum can be proven (a cap binds, a copy is out of sync). */
  readonly leaderMovesLeft: number | null;
  readonly movesInFlight: number;
}

/** `cluster.concerns`: what needs a person, and what only the leader's memory shows. */
interface Concerns {
  /** Cluster time, ms. */
  readonly nowMs: number;
  readonly blocked: BlockedPlacement;
  /** Opening or fenced for longer than a hand-over may take. */
  readonly stuck: Stuck;
  readonly unheard: readonly { readonly broker: string; readonly forMs: number }[];
  readonly downAfterMs: number;
}

/** What the last pass wanted and could not do until somebody makes room or brings a broker back. */
export interface BlockedPlacement {
  /** Shards by the code of what stops them. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Of one of them, for people; `null`: there is none. */
  readonly example: string | null;
}

/** Waits that do not end by themselves. */
const BLOCKING: ReadonlySet<string> = new Set([
  'no_destination',
  'no_room',
  'destination_failed',
  'leader_unconfirmed',
]);

type RequestRef = { readonly session: number; readonly n: number } | null;

interface ShardParams {
  readonly shard: string;
  readonly expectedGeneration: number | null;
  readonly request: RequestRef;
}

interface MoveParams extends ShardParams, MoveRequest {
  readonly dryRun: boolean;
}

/** `move.start`. `written` is false for a dry run; `generation` is then the one that was looked at. */
export interface MoveAnswer {
  readonly revision: number;
  readonly generation: number;
  readonly written: boolean;
  readonly step: Step['step'];
  readonly shard: string;
  readonly role: Step['role'];
  readonly from: string | null;
  readonly to: string | null;
  readonly copies: boolean;
  readonly drops: string | null;
  readonly zonesBefore: number;
  readonly zonesAfter: number;
}

/** `shard.explain`. */
export interface ExplainAnswer {
  readonly revision: number;
  readonly shard: string;
  readonly assignment: Assignment | null;
  /** The decision that last placed, promoted or moved it. */
  readonly decision: Decision | null;
  /** Of the current place, for people. */
  readonly place: readonly string[];
  /** What its leader last reported; `null`: nothing since this Raft leader began. */
  readonly offsets: {
    readonly generation: number;
    readonly leaderOffset: number;
    readonly followers: object;
  } | null;
  readonly next: readonly Pick<Step, 'step' | 'role' | 'from' | 'to' | 'reason' | 'why'>[];
  readonly waiting: readonly { readonly reason: string; readonly detail: string }[];
}

/** What operators ask of the leader's planner. Params were checked by the admin surface. */
export function serveOperators(plane: ControlPlane, timings: BrokerTimings, tenure: () => Tenure): void {
  const { state } = plane;
  plane.serve('placement.status', async () => status(tenure(), state));
  plane.serve('cluster.concerns', async () => concerns(tenure(), state, timings));
  plane.serve('cluster.time', async () => tenure().nowMs());
  plane.serve('placement.plan', async () => tenure().passes.planNow());
  plane.serve('move.start', async (params) => startMove(tenure(), state, params as MoveParams));
  plane.serve('move.cancel', async (params) => cancelMove(tenure(), state, params as ShardParams));
  plane.serve('shard.explain', async (params) => explain(tenure(), state, (params as ShardParams).shard));
  plane.serve('shard.abandon', async (params) => abandon(tenure(), state, params as ShardParams));
}

function status(tenure: Tenure, state: StateView): PlacementStatus {
  const { revision } = state;
  const { paused } = state.policy;
  const { last } = tenure.passes;
  const plan = last?.plan ?? null;
  const movesInFlight = tenure.moving.size;
  const leaderMovesLeft = plan?.minimumLeaderMoves ?? null;
  // A plan of an older state says nothing of what has been written since.
  const isQuiet = last?.revision === revision && last.plan.steps === 0;
  let shards = 0;
  for (const resource of state.resources.values()) shards += resource.shards;
  // What waits to be placed, as in a cluster that starts, is not level though no pass has a step for it.
  const isPlaced = state.assignments.size === shards;
  const level = isQuiet && isPlaced && movesInFlight === 0 && (leaderMovesLeft ?? 0) === 0;
  return { paused, level, leaderMovesLeft, movesInFlight };
}

function concerns(tenure: Tenure, state: StateView, timings: BrokerTimings): Concerns {
  const unheard = [...state.brokers.values()].flatMap(({ id, incarnation, lifecycle, imported }) => {
    const serves = (lifecycle === 'live' || lifecycle === 'draining') && !imported;
    const forMs = serves ? tenure.liveness.silentForMs(id, incarnation) : 0;
    return forMs > timings.leaseMs ? [{ broker: id, forMs }] : [];
  });
  return {
    nowMs: tenure.nowMs(),
    blocked: blocked(tenure),
    stuck: tenure.inactive.longerThan(state.policy.fenceTimeoutMs),
    unheard,
    downAfterMs: silenceUntilFreeMs(timings),
  };
}

function blocked(tenure: Tenure): BlockedPlacement {
  const plan = tenure.passes.last?.plan;
  const found = [
    ...Array.from(plan?.waiting ?? []).filter(([reason]) => BLOCKING.has(reason)),
    ...(plan?.unplaceable ?? []),
  ];
  const counts = new Map<string, number>();
  for (const [reason, { count }] of found) counts.set(reason, (counts.get(reason) ?? 0) + count);
  const first = found[0]?.[1].first;
  const example = first === undefined ? null : `${first.shard}: ${first.detail}`;
  return { reasons: Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))), example };
}

/** What is named must be there: that it is not is another mistake than what a rule forbids. */
function findShard(state: StateView, shard: string): void {
  const { resource, number } = splitShard(shard);
  const row = state.resources.get(resource);
  if (row === undefined || number >= row.shards) {
    throw new EvenkeelError('not_found', `${shard} is no shard of the cluster`);
  }
}

function findBroker(state: StateView, id: string): void {
  if (!state.brokers.has(id)) throw new EvenkeelError('not_found', `no broker ${id} is registered`);
}

async function startMove(tenure: Tenure, state: StateView, params: MoveParams): Promise<MoveAnswer> {
  const { shard, role, from, to, dryRun } = params;
  findShard(state, shard);
  findBroker(state, to);
  if (from !== null) findBroker(state, from);
  const answer = await tenure.passes.ask('move', { shard, role, from, to });
  if (from !== null && 'step' in answer && answer.step.from !== from) {
    throw new EvenkeelError('refused', `${shard}: ${answer.step.from} leads it, not ${from}`);
  }
  return carryOut(tenure, state, params, answer, dryRun);
}

async function cancelMove(
  tenure: Tenure,
  state: StateView,
  params: ShardParams,
): Promise<MoveAnswer & { readonly detail: string }> {
  findShard(state, params.shard);
  const answer = await tenure.passes.ask('cancel', params.shard);
  const written = await carryOut(tenure, state, params, answer, false);
  const detail =
    written.drops === null
      ? 'the move is taken back'
      : `the move is taken back; the copy on ${written.drops} goes`;
  return { ...written, detail };
}

/** Writes what was decided, or says why it is not: refused by the planner, or by what has changed since. */
async function carryOut(
  tenure: Tenure,
  state: StateView,
  { shard, expectedGeneration, request }: ShardParams,
  answer: OperatorAnswer,
  dryRun: boolean,
): Promise<MoveAnswer> {
  if ('refused' in answer) throw new EvenkeelError('refused', answer.refused);
  const { step, zonesBefore, zonesAfter } = answer;
  if (expectedGeneration !== null && step.expect !== expectedGeneration) {
    throw new EvenkeelError('stale', `${shard} is at generation ${step.expect}, not ${expectedGeneration}`);
  }
  const { step: name, role, from, to, copies, next } = step;
  // Of a move that begins, the copy that goes in its end; of one that ends, the copy that goes now.
  const drops = next.move?.drops ?? step.drops;
  const told = { step: name, shard, role, from, to, copies, drops, zonesBefore, zonesAfter };
  if (dryRun) return { revision: state.revision, generation: step.expect, written: false, ...told };
  const row = rowOf(step, state);
  if (row === null) throw new EvenkeelError('not_found', `the resource of ${shard} was deleted meanwhile`);
  const { revision, value } = await tenure.propose({ type: 'placement', rows: [row] }, request ?? undefined);
  const [result] = value as readonly RowResult[];
  if (result?.result !== 'accepted') throw refusal(result);
  return { revision, generation: step.expect + 1, written: true, ...told };
}

function refusal(result: RowResult | undefined): EvenkeelError {
  const code = result?.result ?? 'internal';
  const known: ErrorCode = code in ERRORS ? (code as ErrorCode) : 'refused';
  return new EvenkeelError(known, result?.detail ?? 'the entry was applied without a result');
}

async function explain(tenure: Tenure, state: StateView, shard: string): Promise<ExplainAnswer> {
  findShard(state, shard);
  const answer = await tenure.passes.ask('explain', shard);
  if (answer === null) throw new EvenkeelError('not_found', `${shard} is no shard of the cluster`);
  const row = state.assignments.get(shard);
  return {
    revision: state.revision,
    shard,
    assignment: row === undefined ? null : assignmentRow(row, state.phase),
    decision: row?.decision ?? null,
    place: answer.place,
    offsets: tenure.reports.offsets(shard),
    next: answer.next.map(({ step, role, from, to, reason, why }) => ({ step, role, from, to, reason, why })),
    waiting: answer.waiting.map(({ reason, detail }) => ({ reason, detail })),
  };
}

async function abandon(
  tenure: Tenure,
  state: StateView,
  { shard, expectedGeneration, request }: ShardParams,
): Promise<{ revision: number; shard: string }> {
  findShard(state, shard);
  // What is given up is what was looked at: a shard that changes meanwhile is looked at again by whoever asks.
  const generation = expectedGeneration ?? state.assignments.get(shard)?.generation ?? null;
  const refused = await tenure.passes.ask('abandon', shard);
  if (refused !== null) throw new EvenkeelError('refused', refused);
  const command = { type: 'abandonShard', shard, expectedGeneration: generation } as const;
  const { revision } = await tenure.propose(command, request ?? undefined);
  return { revision, shard };
}
