import type { AssignmentRow, StateView } from '../state/index.ts';

/** What is not as it should be in a cluster whose brokers are alike, all live, and left alone; `null`: nothing. */
export function unsettledPart(state: StateView): string | null {
  for (const broker of state.brokers.values()) {
    if (broker.lifecycle !== 'live') return `broker ${broker.id} is ${broker.lifecycle}`;
  }
  const leaders = new Counts([...state.brokers.keys()]);
  for (const resource of state.resources.values()) {
    const own = new Counts([...state.brokers.keys()]);
    const ownCopies = new Counts([...state.brokers.keys()]);
    for (let n = 0; n < resource.shards; n++) {
      const row = state.assignments.get(`${resource.kind}:${resource.name}/${n}`);
      if (row === undefined) return `${resource.name}/${n} is placed nowhere`;
      const wrong = wrongWith(row, resource.replicationFactor);
      if (wrong !== null) return `${row.shard} ${wrong}`;
      own.add(row.leader);
      leaders.add(row.leader);
      for (const id of row.replicas) ownCopies.add(id);
    }
    if (own.spread > 1) return `${resource.name} is led ${own.text}`;
    if (ownCopies.spread > 1) return `${resource.name} is copied ${ownCopies.text}`;
  }
  // Totals of copies come as near as single moves bring them; how near is for the planner's own tests.
  return leaders.spread > 1 ? `leaders in total are ${leaders.text}` : null;
}

function wrongWith(row: AssignmentRow, replicationFactor: number): string | null {
  if (row.state !== 'active') return `is ${row.state}`;
  if (row.move !== null) return `is being moved to ${row.move.to} (${row.move.step})`;
  if (row.replicas.length !== replicationFactor) return `has ${row.replicas.length} copies`;
  return row.inSync.length === replicationFactor ? null : `has ${row.inSync.length} copies in sync`;
}

/** How much of something each broker has. */
class Counts {
  readonly #counts: Map<string, number>;

  constructor(ids: readonly string[]) {
    this.#counts = new Map(ids.map((id) => [id, 0]));
  }

  add(id: string): void {
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  get spread(): number {
    const counts = [...this.#counts.values()];
    return Math.max(...counts) - Math.min(...counts);
  }

  get text(): string {
    return [...this.#counts].map(([id, count]) => `${id}=${count}`).join(',');
  }
}
