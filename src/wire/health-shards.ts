import { z } from 'zod';
import type { Clock } from '../../raft/index.ts';
import { compareStrings, failureCounts, MOST_TRIES } from '../../placement/index.ts';
import type { AssignmentRow, BrokerRow, StateView } from '../state/index.ts';
import { durationText } from '../duration.ts';
import { countSpreads } from './rpc-levels.ts';
import { inSlices, perRevisionInSlices } from './rpc-per-revision.ts';
import { countReplication, sumReplication } from './rpc-replication.ts';
import { counterSchema } from './rpc-schemas.ts';

/** Failed tries of one shard's moves from which on it is more than bad luck. */
const FAILING_MOVES = 2;
/** Brokers named in one line. */
const MAX_NAMED = 5;

/** What the Raft leader knows beyond the replicated state (`cluster.concerns`). */
export const concernsSchema = z.object({
  /** Cluster time, ms. */
  nowMs: z.number(),
  blocked: z.object({ reasons: z.record(z.string(), counterSchema), example: z.string().nullable() }),
  /** Shards that are opening or fenced for longer than a hand-over may take. */
  stuck: z.object({
    count: counterSchema,
    longest: z.object({ shard: z.string(), forMs: z.number() }).nullable(),
  }),
  /** Brokers that are not heard within their lease and are not yet declared down. */
  unheard: z.array(z.object({ broker: z.string(), forMs: z.number() })),
  /** How long a broker may be silent until it is declared down, ms. */
  downAfterMs: z.number(),
});
export type Concerns = z.output<typeof concernsSchema>;

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** @param concerns a text: why the leader does not say */
export async function shardChecks(
  state: StateView,
  clock: Clock,
  concerns: Concerns | string,
): Promise<readonly Check[]> {
  const counts = sumReplication(await countReplication(state, clock));
  const failing = await failingMoves(state, clock);
  const { resourcesOutOfLevel } = await countSpreads(state, clock);
  const known = typeof concerns === 'string' ? null : concerns;
  return [
    leadersCheck(counts, known, state),
    { name: 'copies', ok: counts.short === 0, detail: `${counts.short} shards short of in-sync copies` },
    brokersCheck(state, known),
    movesCheck(failing, state, known?.nowMs ?? state.timeMs),
    pausedCheck(state, resourcesOutOfLevel),
    placementCheck(concerns),
  ];
}

function leadersCheck(
  { leaderless, handingOver }: { leaderless: number; handingOver: number },
  concerns: Concerns | null,
  state: StateView,
): Check {
  const name = 'leaders';
  const longest = concerns?.stuck.longest ?? null;
  const unserved = leaderless - handingOver;
  const parts = [`${leaderless} shards without a serving leader`];
  if (handingOver > 0) parts.push(`${handingOver} of them opening or being handed over`);
  if (longest !== null) {
    const row = state.assignments.get(longest.shard);
    const doing = row === undefined ? '' : row.state === 'draining' ? ` to drain` : ` to confirm`;
    const who = row === undefined ? 'its leader' : row.leader;
    parts.push(
      `${concerns?.stuck.count} for too long: ${longest.shard} waits for ${who}${doing} for ${durationText(longest.forMs)}`,
    );
  }
  return { name, ok: unserved === 0 && longest === null, detail: parts.join(', ') };
}

/** Who is gone, since when, and what happens next and when. */
function brokersCheck(state: StateView, concerns: Concerns | null): Check {
  const gone = [...state.brokers.values()]
    .filter(({ lifecycle }) => lifecycle === 'down' || lifecycle === 'left')
    .sort((a, b) => compareStrings(a.id, b.id));
  const needed = gone.filter(({ id }) => state.copies.has(id));
  const lines = needed.map((row) => goneText(row, state, concerns?.nowMs ?? state.timeMs));
  for (const { broker, forMs } of concerns?.unheard ?? []) {
    const leftMs = Math.max(0, (concerns?.downAfterMs ?? 0) - forMs);
    lines.push(`${broker} not heard for ${durationText(forMs)}, declared down in ${durationText(leftMs)}`);
  }
  if (lines.length === 0) {
    const others = gone.length === 0 ? '' : `; ${gone.length} are gone and hold nothing`;
    return { name: 'brokers', ok: true, detail: `no broker is missing${others}` };
  }
  const more = lines.length > MAX_NAMED ? [`and ${lines.length - MAX_NAMED} more`] : [];
  return { name: 'brokers', ok: false, detail: [...lines.slice(0, MAX_NAMED), ...more].join('; ') };
}

function goneText({ id, lifecycle, downSinceMs }: BrokerRow, state: StateView, nowMs: number): string {
  const copies = state.copies.get(id) ?? 0;
  const sinceMs = Math.max(0, nowMs - (downSinceMs ?? nowMs));
  const what = `${id} ${lifecycle} for ${durationText(sinceMs)}, ${copies} copies`;
  if (state.policy.paused) return `${what} are made elsewhere once placement is resumed`;
  const waitMs = lifecycle === 'left' ? 0 : state.policy.restoreAfterMs - sinceMs;
  if (waitMs > 0) return `${what} are made elsewhere in ${durationText(waitMs)} unless it comes back`;
  return `${what} left to be made elsewhere`;
}

interface Failing {
  /** Shards whose moves have failed again and again, and that still have one to make. */
  readonly count: number;
  readonly worst: AssignmentRow | null;
  /** Of each destination that shards are kept from since their moves there failed: how many. */
  readonly destinations: ReadonlyMap<string, { readonly shards: number; readonly lastAtMs: number }>;
}

const failingMoves = perRevisionInSlices(async (state, clock): Promise<Failing> => {
  let count = 0;
  let worst: AssignmentRow | null = null;
  const destinations = new Map<string, { shards: number; lastAtMs: number }>();
  const isLeaving = (id: string): boolean => state.brokers.get(id)?.lifecycle !== 'live';
  await inSlices(state.assignments.list(), clock, (row) => {
    for (const { to, times, atMs } of row.failures ?? []) {
      if (times < MOST_TRIES) continue;
      const { shards = 0, lastAtMs = 0 } = destinations.get(to) ?? {};
      destinations.set(to, { shards: shards + 1, lastAtMs: Math.max(lastAtMs, atMs) });
    }
    if (row.failedMoves < FAILING_MOVES) return;
    if (row.move === null && !row.replicas.some(isLeaving) && row.inSync.length === row.replicas.length)
      return;
    count++;
    if (worst === null || row.failedMoves > worst.failedMoves) worst = row;
  });
  return { count, worst, destinations };
});

function movesCheck({ count, worst, destinations }: Failing, state: StateView, nowMs: number): Check {
  const lines: string[] = [];
  if (worst !== null) {
    const to = worst.move === null ? '' : `, now to ${worst.move.to}`;
    lines.push(
      `${count} shards whose moves keep failing: ${worst.shard} failed ${worst.failedMoves} times${to}; evenkeel shard explain ${worst.shard}`,
    );
  }
  for (const [id, { shards, lastAtMs }] of destinations) {
    if (!failureCounts(lastAtMs, state.brokers.get(id), nowMs)) continue;
    lines.push(`${shards} shards are kept from ${id}, where their moves failed; restart it to try again`);
  }
  const ok = lines.length === 0;
  return { name: 'moves', ok, detail: ok ? 'no move keeps failing' : lines.join('; ') };
}

/** A pause is an operator's decision; what waits for its end is what needs a person. */
function pausedCheck(state: StateView, resourcesOutOfLevel: number): Check {
  const name = 'paused';
  if (!state.policy.paused) return { name, ok: true, detail: 'placement is not paused' };
  const waiting: string[] = [];
  const held = (lifecycle: BrokerRow['lifecycle']): string[] =>
    [...state.brokers.values()]
      .filter((row) => row.lifecycle === lifecycle && state.copies.has(row.id))
      .map(({ id }) => id);
  const draining = held('draining');
  const lost = [...held('down'), ...held('left')];
  if (draining.length > 0) waiting.push(`draining ${draining.slice(0, MAX_NAMED).join(', ')}`);
  if (lost.length > 0) waiting.push(`restoring the copies of ${lost.slice(0, MAX_NAMED).join(', ')}`);
  if (resourcesOutOfLevel > 0) waiting.push(`levelling ${resourcesOutOfLevel} resources`);
  const until = 'until evenkeel placement resume';
  if (waiting.length === 0)
    return { name, ok: true, detail: `placement is paused ${until}; nothing waits for it` };
  return { name, ok: false, detail: `placement is paused ${until}: ${waiting.join('; ')}` };
}

/** Drains, restores and placements that wait for room or a broker: only an operator ends that. */
function placementCheck(concerns: Concerns | string): Check {
  const name = 'placement';
  if (typeof concerns === 'string')
    return { name, ok: false, detail: `the leader does not say: ${concerns}` };
  const { reasons, example } = concerns.blocked;
  if (example === null) return { name, ok: true, detail: 'no shard waits for room or for a broker' };
  const counts = Object.entries(reasons).map(([reason, count]) => `${count} ${reason}`);
  return {
    name,
    ok: false,
    detail: `shards that wait for room or a broker: ${counts.join(', ')}; ${example}`,
  };
}
