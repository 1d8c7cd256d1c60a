import type { AssignmentRow, ChangeSet, StateView } from '../state/index.ts';

/** What no write may do to an assignment, whoever decided it; checked on every member as it applies. Throws at the first breach. */
export class RowChecks {
  readonly #state: StateView;
  /** The highest generation seen of any shard. */
  #highest = 0;

  constructor(state: StateView) {
    this.#state = state;
    for (const { generation } of state.assignments.list()) this.#saw(generation);
  }

  applied({ changes }: ChangeSet): void {
    const written = changes.filter((change) => change.kind === 'assignment');
    for (const { previous, assignment } of written) {
      if (previous !== null) mayFollow(previous, assignment);
      else if (assignment.generation <= this.#highest) {
        const { shard, generation } = assignment;
        throw new Error(
          `unsafe: ${shard} begins at generation ${generation}, ${this.#highest} was used before`,
        );
      }
    }
    for (const { assignment } of written) this.#saw(assignment.generation);
    if (written.length > 0) this.#capsHold();
  }

  #saw(generation: number): void {
    this.#highest = Math.max(this.#highest, generation);
  }

  #capsHold(): void {
    const copies = new Map<string, number>();
    for (const row of this.#state.assignments.list()) {
      for (const id of row.replicas) copies.set(id, (copies.get(id) ?? 0) + 1);
    }
    for (const { id, maxShards } of this.#state.brokers.values()) {
      const held = copies.get(id) ?? 0;
      if (maxShards !== null && held > maxShards) {
        throw new Error(`unsafe: broker ${id} holds ${held} copies, its cap is ${maxShards}`);
      }
    }
  }
}

function mayFollow(before: AssignmentRow, after: AssignmentRow): void {
  const { shard, leader, generation, epoch } = after;
  if (generation < before.generation || epoch < before.epoch) {
    throw new Error(`unsafe: ${shard} goes back from generation ${before.generation}, epoch ${before.epoch}`);
  }
  if (leader === before.leader) return;
  if (epoch !== generation) throw new Error(`unsafe: ${shard} changes its leader without a new epoch`);
  if (!before.inSync.includes(leader)) {
    throw new Error(`unsafe: ${shard} is given to ${leader}, which was not in sync`);
  }
}
