import { splitShard, type Broker } from '../../placement/index.ts';

/**
 * What the planner claims, computed another way: a plain successive-shortest-path flow (Bellman-Ford, no potentials, no
 * start) over numbers worked out here from nothing but the rows. It shares no code with placement/.
 */

interface Arc {
  readonly to: number;
  room: number;
  readonly cost: number;
  readonly back: number;
}

/** Minimum-cost flow on a small graph. */
export class Flow {
  readonly #arcs: Arc[][] = [];

  node(): number {
    this.#arcs.push([]);
    return this.#arcs.length - 1;
  }

  arc(from: number, to: number, room: number, cost: number): void {
    const forward = this.#arcs[from];
    const backward = this.#arcs[to];
    if (forward === undefined || backward === undefined) throw new Error('no such node');
    forward.push({ to, room, cost, back: backward.length });
    backward.push({ to: from, room: 0, cost: -cost, back: forward.length - 1 });
  }

  /** Pushes up to `amount` from source to sink at the least cost. */
  run(source: number, sink: number, amount = Infinity): { flow: number; cost: number } {
    let flow = 0;
    let cost = 0;
    while (flow < amount) {
      const distance = this.#arcs.map(() => Infinity);
      const via = this.#arcs.map((): { node: number; arc: Arc } | null => null);
      distance[source] = 0;
      for (let changed = true; changed;) {
        changed = false;
        for (const [node, arcs] of this.#arcs.entries()) {
          const here = distance[node] ?? Infinity;
          if (here === Infinity) continue;
          for (const arc of arcs) {
            if (arc.room <= 0 || here + arc.cost >= (distance[arc.to] ?? Infinity) - 1e-9) continue;
            distance[arc.to] = here + arc.cost;
            via[arc.to] = { node, arc };
            changed = true;
          }
        }
      }
      const reach = distance[sink] ?? Infinity;
      if (reach === Infinity) break;
      for (let at = sink; at !== source;) {
        const step = via[at];
        if (!step) throw new Error('a broken path');
        step.arc.room--;
        const back = this.#arcs[at]?.[step.arc.back];
        if (back === undefined) throw new Error('a broken arc');
        back.room++;
        at = step.node;
      }
      flow++;
      cost += reach;
    }
    return { flow, cost };
  }
}

/** Live brokers' parts of `total` shards by weight, without caps. */
function part(total: number, live: readonly Broker[], broker: Broker): { floor: number; ceiling: number } {
  const weights = live.reduce((sum, row) => sum + row.weight, 0);
  const whole = total * broker.weight;
  const rest = whole % weights;
  return { floor: (whole - rest) / weights, ceiling: (whole - rest) / weights + (rest > 0 ? 1 : 0) };
}

/**
 * The fewest leadership moves that bring every resource and the totals of the live brokers within floor and ceiling.
 * `leaders`: by shard, who leads it now (moves in flight counted as finished). No caps; any leader may move anywhere.
 */
export function fewestMoves(brokers: readonly Broker[], leaders: ReadonlyMap<string, string>): number {
  const live = brokers.filter((row) => row.lifecycle === 'live' && !row.drain);
  const byResource = new Map<string, string[]>();
  for (const [shard, leader] of leaders) {
    const { resource } = splitShard(shard);
    byResource.set(resource, [...(byResource.get(resource) ?? []), leader]);
  }
  // Each resource sends its shards to brokers: the first as many as the broker leads today are kept and cost nothing.
  // Lower bounds are met by a reward no number of moves outweighs.
  const reward = 1_000_000;
  const flow = new Flow();
  const source = flow.node();
  const sink = flow.node();
  const total = leaders.size;
  let bounds = 0;
  const totals = live.map((row) => {
    const node = flow.node();
    const { floor, ceiling } = part(total, live, row);
    flow.arc(node, sink, floor, -reward);
    flow.arc(node, sink, ceiling - floor, 0);
    bounds += floor;
    return node;
  });
  for (const [, led] of byResource) {
    const from = flow.node();
    flow.arc(source, from, led.length, 0);
    live.forEach((row, i) => {
      const { floor, ceiling } = part(led.length, live, row);
      const now = led.filter((leader) => leader === row.id).length;
      const to = totals[i] ?? 0;
      // In order of cost, as a shortest path takes them: kept within the floor, moved within it, the remainder.
      const kept = Math.min(now, floor);
      flow.arc(from, to, kept, -reward);
      flow.arc(from, to, floor - kept, -reward + 1);
      flow.arc(from, to, ceiling - floor, now > floor ? 0 : 1);
      bounds += floor;
    });
  }
  const { flow: sent, cost } = flow.run(source, sink);
  if (sent !== total) throw new Error(`only ${sent} of ${total} shards fit`);
  const moves = cost + reward * bounds;
  if (moves < 0 || moves > total) throw new Error('a floor could not be met');
  return Math.round(moves);
}

/** How level leaders are, in one whole number: leaders outside floor and ceiling, then squares by resource, then of totals. */
const OUTSIDE = 1_000_000;
const RESOURCE = 1_000_000;

interface Scale {
  readonly live: readonly Broker[];
  readonly weights: number;
  readonly sizes: ReadonlyMap<string, number>;
  readonly total: number;
}

function scaleOf(brokers: readonly Broker[], shards: readonly string[]): Scale {
  const live = brokers.filter((row) => row.lifecycle === 'live' && !row.drain);
  const sizes = new Map<string, number>();
  for (const shard of shards) {
    const { resource } = splitShard(shard);
    sizes.set(resource, (sizes.get(resource) ?? 0) + 1);
  }
  return { live, weights: live.reduce((sum, row) => sum + row.weight, 0), sizes, total: shards.length };
}

/** Weighted square of the distance of `n` from a share of `total`, times the weights so that it is whole. */
function square({ weights }: Scale, n: number, total: number, row: Broker): number {
  return weights * n * n - 2 * n * total * row.weight;
}

function costInResource(scale: Scale, n: number, resource: string, row: Broker): number {
  const size = scale.sizes.get(resource) ?? 0;
  const { floor, ceiling } = part(size, scale.live, row);
  return OUTSIDE * Math.max(0, n - ceiling, floor - n) + square(scale, n, size, row);
}

/** The number of a finished choice. */
export function levelness(brokers: readonly Broker[], leaders: ReadonlyMap<string, string>): number {
  const scale = scaleOf(brokers, [...leaders.keys()]);
  let cost = 0;
  for (const row of scale.live) {
    const led = [...leaders]
      .filter(([, leader]) => leader === row.id)
      .map(([shard]) => splitShard(shard).resource);
    cost += square(scale, led.length, scale.total, row);
    for (const resource of scale.sizes.keys()) {
      cost += RESOURCE * costInResource(scale, led.filter((r) => r === resource).length, resource, row);
    }
  }
  return cost;
}

/**
 * The least `levelness` that any choice of promotions reaches. `led`: by shard, the leaders that stay; `lost`: by
 * shard, the live in-sync copies that may take it.
 */
export function bestPromotions(
  brokers: readonly Broker[],
  led: ReadonlyMap<string, string>,
  lost: ReadonlyMap<string, readonly string[]>,
): number {
  const scale = scaleOf(brokers, [...led.keys(), ...lost.keys()]);
  const flow = new Flow();
  const source = flow.node();
  const sink = flow.node();
  const stay = (leader: string, resource: string | null): number =>
    [...led].filter(
      ([s, who]) => who === leader && (resource === null || splitShard(s).resource === resource),
    ).length;
  let start = 0;
  // A convex cost falls apart into unit arcs of rising cost.
  const units = (from: number, to: number, now: number, cost: (n: number) => number): void => {
    start += cost(now);
    for (let i = 0; i < lost.size; i++) flow.arc(from, to, 1, cost(now + i + 1) - cost(now + i));
  };
  const pairs = new Map<string, number>();
  for (const row of scale.live) {
    const all = flow.node();
    units(all, sink, stay(row.id, null), (n) => square(scale, n, scale.total, row));
    for (const resource of scale.sizes.keys()) {
      const node = flow.node();
      pairs.set(`${resource} ${row.id}`, node);
      units(node, all, stay(row.id, resource), (n) => RESOURCE * costInResource(scale, n, resource, row));
    }
  }
  for (const [shard, copies] of lost) {
    const node = flow.node();
    flow.arc(source, node, 1, 0);
    for (const copy of copies) flow.arc(node, pairs.get(`${splitShard(shard).resource} ${copy}`) ?? 0, 1, 0);
  }
  const { flow: sent, cost } = flow.run(source, sink);
  if (sent !== lost.size) throw new Error('a lost shard has no copy to lead it');
  return start + cost;
}
