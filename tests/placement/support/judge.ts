import {
  shares,
  splitShard,
  type Assignment,
  type ClusterFile,
  type Phase,
  type SimStep,
} from '../../../placement/index.ts';

function fail(text: string): never {
  throw new Error(text);
}

function text(step: SimStep): string {
  return `pass ${step.pass}: ${step.step} ${step.shard} ${step.from}>${step.to} (${step.reason})`;
}

/** What must hold on the way, whatever the cluster: judged from the steps and rows alone. */
export function judgeCalm(file: ClusterFile, phase: Phase): void {
  if (!phase.settled) fail(`not settled after ${phase.passes} passes`);
  judgeCaps(file, phase);
  judgeVectors(phase);
  judgeMoves(phase);
  judgeSteps(phase);
  for (const row of phase.cluster.assignments) {
    if (row.move !== null) fail(`${row.shard} still moves`);
    if (new Set(row.replicas).size !== row.replicas.length) fail(`${row.shard} has a broker twice`);
  }
}

/** Replays the copies that steps start and end: no broker ever passes its cap, but for what it held above it before. */
function judgeCaps(file: ClusterFile, phase: Phase): void {
  const sets = new Map(file.assignments.map((row) => [row.shard, new Set(row.replicas)]));
  const caps = new Map(phase.cluster.brokers.map((row) => [row.id, row.maxShards ?? Infinity]));
  const held = new Map<string, number>();
  for (const set of sets.values()) for (const id of set) held.set(id, (held.get(id) ?? 0) + 1);
  const most = new Map([...caps].map(([id, cap]) => [id, Math.max(cap, held.get(id) ?? 0)]));
  for (const step of phase.steps) {
    // A placement's followers are not in its step: what it added shows in the rows at the end.
    const set = sets.get(step.shard);
    if (set === undefined) continue;
    if (step.to !== null && !set.has(step.to)) {
      set.add(step.to);
      held.set(step.to, (held.get(step.to) ?? 0) + 1);
      if ((held.get(step.to) ?? 0) > (most.get(step.to) ?? 0)) fail(`${text(step)} passes maxShards`);
    }
    if (step.drops !== null && set.delete(step.drops)) held.set(step.drops, (held.get(step.drops) ?? 0) - 1);
  }
  for (const [id, limit] of most) {
    const now = phase.cluster.assignments.filter((row) => row.replicas.includes(id)).length;
    if (now > limit) fail(`${id} holds ${now} copies, its limit is ${limit}`);
  }
}

function judgeVectors(phase: Phase): void {
  for (const step of phase.steps) {
    const optional =
      ['balance', 'zone', 'level'].includes(step.reason) && ['stage', 'join'].includes(step.step);
    if (!optional) continue;
    if (step.vector === undefined) fail(`${text(step)} carries no vector`);
    const { before, after } = step.vector;
    const at = before.findIndex((n, i) => n !== after[i]);
    if (at < 0 || (after[at] ?? 0) >= (before[at] ?? 0))
      fail(`${text(step)}: ${before.join()} to ${after.join()}`);
  }
}

/** Fewer followers are moved for the sake of levels than there are copies (README, "How long it takes"). */
function judgeSteps(phase: Phase): void {
  const moved = phase.moves.filter(({ role, reason }) => role === 'follower' && reason !== 'operator').length;
  const copies = phase.cluster.assignments.reduce((sum, row) => sum + row.replicas.length, 0);
  if (moved > copies) fail(`${moved} followers are moved, of ${copies} copies`);
}

/** No leadership moves twice, no move is reversed. */
function judgeMoves(phase: Phase): void {
  const led = new Set<string>();
  const went = new Set<string>();
  for (const step of phase.steps) {
    if (step.step !== 'cutOver' && step.step !== 'seat') continue;
    const { shard, role, from, to } = step;
    if (role === 'leader' && led.has(shard)) fail(`${text(step)}: its leadership moved before`);
    if (role === 'leader') led.add(shard);
    if (went.has(`${shard} ${role} ${to}>${from}`)) fail(`${text(step)} goes back`);
    went.add(`${shard} ${role} ${from}>${to}`);
  }
}

/** Every resource and the totals within floor and ceiling by weight, over the shards whose leader serves. */
export function judgeEnd(phase: Phase): void {
  const { brokers, assignments } = phase.cluster;
  const live = brokers.filter((row) => row.lifecycle === 'live' && !row.drain);
  const weights = live.reduce((sum, row) => sum + row.weight, 0);
  const serving = new Set(
    brokers.filter((row) => ['live', 'draining'].includes(row.lifecycle)).map((row) => row.id),
  );
  const counted = assignments.filter((row) => serving.has(row.leader) && row.inSync.includes(row.leader));
  const within = (name: string, rows: readonly { leader: string }[]): void => {
    for (const row of live) {
      const n = rows.filter((a) => a.leader === row.id).length;
      const share = (rows.length * row.weight) / weights;
      if (n < Math.floor(share) || n > Math.ceil(share))
        fail(`${name}: ${row.id} leads ${n}, its share is ${share}`);
    }
  };
  within('total', counted);
  for (const r of new Set(counted.map((row) => splitShard(row.shard).resource))) {
    within(
      r,
      counted.filter((row) => splitShard(row.shard).resource === r),
    );
  }
}

/**
 * Whatever the caps: nobody who leads a shard could still hand it over to a copy that is in sync so that its resource came closer
 * to floor and ceiling; but for what has moved already.
 */
export function judgeHandOvers(phase: Phase): void {
  const { brokers, assignments, phase: number = 0 } = phase.cluster;
  const live = Uint8Array.from(brokers, (row) => (row.lifecycle === 'live' ? 1 : 0));
  const weight = Int32Array.from(brokers, (row) => row.weight);
  const cap = Int32Array.from(brokers, (row) => row.maxShards ?? 2 ** 31 - 1);
  const at = new Map(brokers.map((row, i) => [row.id, i]));
  const serves = ({ leader, inSync }: Assignment): boolean => {
    const lifecycle = brokers[at.get(leader) ?? -1]?.lifecycle;
    return (lifecycle === 'live' || lifecycle === 'draining') && inSync.includes(leader);
  };
  const counted = assignments.filter(serves);
  for (const resource of new Set(counted.map(({ shard }) => splitShard(shard).resource))) {
    const rows = counted.filter(({ shard }) => splitShard(shard).resource === resource);
    const { floor, ceiling } = shares(rows.length, { live, weight, cap });
    const led = new Int32Array(brokers.length);
    for (const { leader } of rows) led[at.get(leader) ?? 0] = (led[at.get(leader) ?? 0] ?? 0) + 1;
    const off = (b: number, by: number): number =>
      Math.max(0, (led[b] ?? 0) + by - (ceiling[b] ?? 0), (floor[b] ?? 0) - (led[b] ?? 0) - by);
    for (const { shard, leader, inSync, moved } of rows) {
      const from = at.get(leader) ?? 0;
      if (live[from] !== 1 || (moved?.phase === number && moved.leader)) continue;
      for (const id of inSync) {
        const to = at.get(id) ?? 0;
        if (to === from || live[to] !== 1) continue;
        if (off(from, -1) + off(to, 1) < off(from, 0) + off(to, 0))
          fail(`${shard} could still be handed from ${leader} to ${id}, and level ${resource}`);
      }
    }
  }
}

/** Where a fewest number of leadership moves is claimed, exactly so many are made, and the end is level. */
export function judgeMinimum(phase: Phase): void {
  if (phase.minimumLeaderMoves === null) return;
  const made = phase.moves.filter(({ role }) => role === 'leader').length;
  if (made !== phase.minimumLeaderMoves)
    fail(`${made} leadership moves are made, ${phase.minimumLeaderMoves} claimed as the fewest`);
  judgeEnd(phase);
}

/** By shard, who leads once the first pass's promotions and placements are written and moves in flight are done. */
export function leadersAfterFirstPass(file: ClusterFile, phase: Phase): Map<string, string> {
  const serving = new Set(
    file.brokers.filter((row) => ['live', 'draining'].includes(row.lifecycle)).map((row) => row.id),
  );
  const leaders = new Map<string, string>();
  for (const row of file.assignments) {
    if (serving.has(row.leader) && row.inSync.includes(row.leader))
      leaders.set(row.shard, row.move?.role === 'leader' ? row.move.to : row.leader);
  }
  for (const step of phase.steps) {
    if (step.pass === 1 && ['place', 'promote'].includes(step.step) && step.to !== null)
      leaders.set(step.shard, step.to);
  }
  return leaders;
}
