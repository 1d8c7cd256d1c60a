import {
  compareShards,
  resourceKey,
  splitShard,
  type Assignment,
  type Broker,
  type Move,
  type Policy,
  type Resource,
} from './model.ts';
import { clusterFile, type ClusterFile } from './cluster-file.ts';
import type { Reports, ShardReport, Snapshot, Step } from './plan-types.ts';
import { MoveSlots } from './slots.ts';
import { refusalOf, writeStep } from './write.ts';

/** Registrations that a file lists are older than any settle window. */
const LONG_AGO_MS = -(2 ** 42);

/** One finished move, as `simulate` prints it. */
export interface FinishedMove {
  readonly shard: string;
  readonly role: Move['role'];
  readonly from: string | null;
  readonly to: string;
  readonly reason: Move['reason'];
  /** The destination held no in-sync copy when the move was first seen. */
  readonly copied: boolean;
}

/**
 * A cluster with a virtual clock whose brokers do at once what they are told: leaders confirm, a copy that was
 * started is in sync at the second pass after, a fenced leader has drained by the next pass.
 */
export class SimCluster {
  readonly brokers = new Map<string, Broker>();
  readonly resources = new Map<string, Resource>();
  readonly #assignments = new Map<string, Assignment>();
  readonly #slots = new MoveSlots();
  readonly #copies = new Map<string, number>();
  /** By shard, then copy: the pass from which on it is in sync. */
  readonly #arrivals = new Map<string, Map<string, number>>();
  /** Shards whose move in flight has to copy data. */
  readonly #copying = new Set<string>();
  #maxGeneration = 0;
  #firstRegisteredAtMs: number | null = null;
  policy: Policy;
  /** Cluster time. It begins where the file was exported. */
  nowMs: number;
  readonly #timeMs: number | undefined;
  /** As the file has it, and one more with each change to a broker, a resource or the policy, and each request by hand. */
  phase: number;
  /** Passes begun since the start. */
  pass = 0;

  constructor(file: Omit<ClusterFile, 'version'>) {
    this.policy = file.policy;
    this.#timeMs = file.timeMs;
    this.nowMs = file.timeMs ?? 0;
    this.phase = file.phase ?? 0;
    for (const broker of file.brokers) {
      const silent = broker.lifecycle === 'down' || broker.lifecycle === 'left';
      this.brokers.set(broker.id, silent ? { ...broker, downSinceMs: broker.downSinceMs ?? 0 } : broker);
    }
    if (file.brokers.length > 0) this.#firstRegisteredAtMs = LONG_AGO_MS;
    for (const resource of file.resources) this.resources.set(resourceKey(resource), resource);
    for (const row of file.assignments) {
      this.put(row);
      if (row.move !== null) this.#noteMove(row, row.move);
      this.#confirm(row.shard);
    }
  }

  /** Time since the start, ms. */
  get virtualMs(): number {
    return this.nowMs - (this.#timeMs ?? 0);
  }

  get assignments(): ReadonlyMap<string, Assignment> {
    return this.#assignments;
  }

  register(broker: Broker): void {
    this.brokers.set(broker.id, broker);
    this.#firstRegisteredAtMs ??= this.nowMs;
  }

  put(row: Assignment): void {
    this.#remove(row.shard);
    this.#assignments.set(row.shard, row);
    for (const id of row.replicas) this.#copies.set(id, (this.#copies.get(id) ?? 0) + 1);
    if (row.move !== null) this.#slots.add(row.move);
    this.#maxGeneration = Math.max(this.#maxGeneration, row.generation);
  }

  /** The shard is gone, with its resource. */
  forget(shard: string): void {
    this.#remove(shard);
    this.#arrivals.delete(shard);
    this.#copying.delete(shard);
  }

  #remove(shard: string): void {
    const row = this.#assignments.get(shard);
    if (row === undefined) return;
    this.#assignments.delete(shard);
    for (const id of row.replicas) this.#copies.set(id, (this.#copies.get(id) ?? 0) - 1);
    if (row.move !== null) this.#slots.remove(row.move);
  }

  /** One more generation of a row, and a new epoch where who serves changes. */
  rewrite(row: Assignment, patch: Partial<Assignment>, opensEpoch = false): void {
    const generation = row.generation + 1;
    this.put({ ...row, ...patch, generation, epoch: opensEpoch ? generation : row.epoch });
  }

  /** Everything that names a broker, in order. */
  rowsOn(broker: string): Assignment[] {
    return [...this.#assignments.values()]
      .filter((row) => row.replicas.includes(broker))
      .sort((a, b) => compareShards(a.shard, b.shard));
  }

  serves(broker: string): boolean {
    const lifecycle = this.brokers.get(broker)?.lifecycle;
    return lifecycle === 'live' || lifecycle === 'draining';
  }

  /** The copy will be in sync from that pass on, if its broker and its leader are up. */
  arriveAt(shard: string, broker: string, pass: number): void {
    const arrivals = this.#arrivals.get(shard) ?? new Map<string, number>();
    this.#arrivals.set(shard, arrivals.set(broker, pass));
  }

  /** Begins a pass: what is due by now comes into sync. */
  beginPass(): void {
    this.pass++;
    for (const shard of [...this.#arrivals.keys()].sort(compareShards)) {
      for (const [broker, pass] of this.#arrivals.get(shard) ?? []) {
        if (pass <= this.pass) this.#arrive(shard, broker);
      }
    }
  }

  /** Whether a copy will come into sync though no time passes. */
  get awaitsCopies(): boolean {
    for (const [shard, arrivals] of this.#arrivals) {
      for (const broker of arrivals.keys()) if (this.#canArrive(shard, broker)) return true;
    }
    return false;
  }

  snapshot(): Snapshot {
    return {
      nowMs: this.nowMs,
      brokers: [...this.brokers.values()],
      resources: [...this.resources.values()],
      assignments: [...this.#assignments.values()],
      policy: this.policy,
      firstRegisteredAtMs: this.#firstRegisteredAtMs,
      phase: this.phase,
    };
  }

  /** What leaders that are up report: a fenced one has drained once its destination holds everything. */
  reports(): Reports {
    const shards = new Map<string, ShardReport>();
    for (const row of this.#assignments.values()) {
      if (row.move === null) continue;
      const { to, progressAtMs } = row.move;
      const synced = row.inSync.includes(to);
      const drained = row.state === 'draining' && synced && this.serves(row.leader);
      const lagRecords = synced ? 0 : null;
      const { generation } = row;
      shards.set(row.shard, { generation, lagRecords, copiedPerSecond: null, drained, progressAtMs });
    }
    return { shards, leasedUntilMs: new Map(), unheard: new Set(), unconfirmed: new Map() };
  }

  /** Writes one decided step; answers the move that it finished. */
  carryOut(step: Step): FinishedMove | null {
    const refusal = this.#refusal(step);
    // What no member would write the planner must not decide.
    if (refusal !== null) throw new Error(`the planner's ${step.step} is refused: ${refusal}`);
    return this.#write(step);
  }

  /** As `carryOut`; false, and nothing is written, where the step does not fit the row (any more). */
  attempt(step: Step): boolean {
    if (this.#refusal(step) !== null) return false;
    this.#write(step);
    return true;
  }

  #refusal(step: Step): string | null {
    const current = this.#assignments.get(step.shard);
    const resource = this.resources.get(splitShard(step.shard).resource);
    if (resource === undefined) throw new Error(`${step.step} of ${step.shard}, which is no shard`);
    const refusal = refusalOf(current, step, {
      broker: (id) => this.brokers.get(id),
      copies: (id) => this.#copies.get(id) ?? 0,
      slots: this.#slots,
      policy: this.policy,
      durable: resource.durable,
      stagedIncarnation: current?.move ? (this.brokers.get(current.move.to)?.incarnation ?? null) : null,
    });
    return refusal?.detail ?? null;
  }

  #write(step: Step): FinishedMove | null {
    const current = this.#assignments.get(step.shard);
    const finished = current === undefined ? null : this.#finishedBy(step, current);
    const row = writeStep(current, step, { maxGeneration: this.#maxGeneration, phase: this.phase });
    this.put(row);
    if (row.move === null) this.#forgetMove(row);
    else if (row.move.to !== current?.move?.to) this.#noteMove(row, row.move);
    this.#confirm(row.shard);
    return finished;
  }

  file(): ClusterFile {
    const { policy, phase } = this;
    return clusterFile({
      phase,
      timeMs: this.#timeMs === undefined ? undefined : this.nowMs,
      brokers: this.brokers.values(),
      resources: this.resources.values(),
      assignments: this.#assignments.values(),
      policy,
    });
  }

  /** A leader that may serve does so at once, and says so. */
  #confirm(shard: string): void {
    const row = this.#assignments.get(shard);
    if (row?.state === 'assigning' && this.serves(row.leader)) this.rewrite(row, { state: 'active' });
  }

  #finishedBy(step: Step, current: Assignment): FinishedMove | null {
    const { move, shard } = current;
    if (move === null || (step.step !== 'cutOver' && step.step !== 'seat')) return null;
    const { role, from, to, reason } = move;
    return { shard, role, from, to, reason, copied: this.#copying.has(shard) };
  }

  #noteMove(row: Assignment, move: Move): void {
    if (row.inSync.includes(move.to)) {
      if (move.copied) this.#copying.add(row.shard);
      return;
    }
    this.#copying.add(row.shard);
    this.arriveAt(row.shard, move.to, this.pass + 2);
  }

  #forgetMove(row: Assignment): void {
    this.#copying.delete(row.shard);
    const arrivals = this.#arrivals.get(row.shard);
    for (const broker of [...(arrivals?.keys() ?? [])]) {
      if (!row.replicas.includes(broker)) arrivals?.delete(broker);
    }
  }

  #arrive(shard: string, broker: string): void {
    const row = this.#assignments.get(shard);
    if (row === undefined || !row.replicas.includes(broker) || row.inSync.includes(broker)) {
      this.#arrivals.get(shard)?.delete(broker);
    } else if (this.#canArrive(shard, broker)) {
      this.#arrivals.get(shard)?.delete(broker);
      const inSync = row.replicas.filter((id) => id === broker || row.inSync.includes(id));
      const move = row.move?.to === broker ? { ...row.move, progressAtMs: this.nowMs } : row.move;
      this.rewrite(row, { inSync, move });
    }
    if (this.#arrivals.get(shard)?.size === 0) this.#arrivals.delete(shard);
  }

  /** Only a leader that is up and holds everything brings a copy up to date. */
  #canArrive(shard: string, broker: string): boolean {
    const row = this.#assignments.get(shard);
    return (
      row !== undefined &&
      row.replicas.includes(broker) &&
      this.serves(broker) &&
      this.serves(row.leader) &&
      row.inSync.includes(row.leader)
    );
  }
}
