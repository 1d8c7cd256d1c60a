import { DEFAULT_POLICY, MoveSlots, resourceKey, type Policy } from '../../placement/index.ts';
import { hashRow, StateHash } from './hash.ts';
import { canonicalAssignment, canonicalBroker, canonicalPolicy, canonicalResource } from './rows.ts';
import { HeldRows } from './held-rows.ts';
import { Sessions } from './sessions.ts';
import type { ShardRows } from './shard-map.ts';
import { ShardSet } from './shard-set.ts';
import { StagedImports, type StagedImport } from './staged-imports.ts';
import { ShardTable, Table } from './table.ts';
import type { AssignmentRow, BrokerRow, Change, ChangeSet, ResourceRow, StateView } from './types.ts';

/** `hashAt` is taken at its multiples, so that members compare under load. */
export const HASH_INTERVAL = 1_000;

/** The header with the names of the tables, at most. */
const HEADER_BYTES = 2_048;

/** Everything of the state that is a single value. */
export interface Header {
  readonly appliedIndex: number;
  readonly revision: number;
  readonly timeMs: number;
  readonly policy: Policy;
  readonly policyRevision: number;
  readonly firstRegisteredAtMs: number | null;
  readonly maxGeneration: number;
  /** Log index of the last change from outside (`beginPhase`): what moved before it may move again. */
  readonly phase: number;
  /** Highest incarnation of a broker that was removed: an id that comes again counts on from it. */
  readonly incarnationFloor: number;
  readonly hashAt: { readonly index: number; readonly hash: string };
}

type MutableHeader = { -readonly [K in keyof Header]: Header[K] };

const EMPTY: Header = {
  appliedIndex: 0,
  revision: 0,
  timeMs: 0,
  policy: DEFAULT_POLICY,
  policyRevision: 0,
  firstRegisteredAtMs: null,
  maxGeneration: 0,
  phase: 0,
  incarnationFloor: 0,
  hashAt: { index: 0, hash: '0000000000000000' },
};

/** What readers see of the state while an entry is applied in parts. */
interface HeldState {
  readonly view: StateView;
  readonly copies: HeldRows<string, number>;
  readonly moving: HeldRows<string, AssignmentRow>;
}

/**
 * The replicated state. Written by `src/apply` alone, one entry at a time: `begin`, any number of writes,
 * `end`, which answers what readers can see to have changed. Hash, tallies and indexes are kept as rows change.
 */
export class ClusterState implements StateView {
  readonly #hash = new StateHash();
  readonly #brokers = new Table<string, BrokerRow>(this.#hash, 'broker', canonicalBroker);
  readonly #resources = new Table<string, ResourceRow>(this.#hash, 'resource', canonicalResource);
  readonly #assignments = new ShardTable<AssignmentRow>(this.#hash, 'assignment', canonicalAssignment);
  readonly sessions = new Sessions(this.#hash);
  readonly imports = new StagedImports(this.#hash);
  readonly slots = new MoveSlots();
  readonly #shardsOn = new Map<string, ShardSet>();
  readonly #copies = new Map<string, number>();
  readonly #moving = new Map<string, AssignmentRow>();
  #shardCount = 0;
  readonly #header: MutableHeader = { ...EMPTY };
  #changes: Change[] = [];
  #held: HeldState | null = null;

  /** As it is now. */
  get header(): Header {
    return { ...this.#header };
  }
  get appliedIndex(): number {
    return this.#header.appliedIndex;
  }
  get revision(): number {
    return this.#header.revision;
  }
  get timeMs(): number {
    return this.#header.timeMs;
  }
  get brokers(): ReadonlyMap<string, BrokerRow> {
    return this.#brokers.rows;
  }
  get resources(): ReadonlyMap<string, ResourceRow> {
    return this.#resources.rows;
  }
  get assignments(): ShardRows<AssignmentRow> {
    return this.#assignments.rows;
  }
  get copies(): ReadonlyMap<string, number> {
    return this.#copies;
  }
  get moving(): ReadonlyMap<string, AssignmentRow> {
    return this.#moving;
  }
  get policy(): Policy {
    return this.#header.policy;
  }
  get policyRevision(): number {
    return this.#header.policyRevision;
  }
  get firstRegisteredAtMs(): number | null {
    return this.#header.firstRegisteredAtMs;
  }
  get maxGeneration(): number {
    return this.#header.maxGeneration;
  }
  get phase(): number {
    return this.#header.phase;
  }
  get hashAt(): { readonly index: number; readonly hash: string } {
    return this.#header.hashAt;
  }

  /** What a snapshot of it takes at most, and little less: counted as rows change. */
  get bytes(): number {
    const tables = this.#brokers.bytes + this.#resources.bytes + this.#assignments.bytes;
    return HEADER_BYTES + tables + this.sessions.bytes + this.imports.bytes;
  }

  /** Shards whose row is still to come. */
  get unplacedShards(): number {
    return this.#shardCount - this.assignments.size;
  }

  get stagedImports(): readonly StagedImport[] {
    return this.imports.list();
  }

  get stateHash(): string {
    const { hashAt: _derived, policy, ...counters } = this.#header;
    return this.#hash.digest(hashRow('header', { ...counters, policy: canonicalPolicy(policy) }));
  }

  /** Shards of all resources together, placed or not. */
  get shardCount(): number {
    return this.#shardCount;
  }

  /** Shards with a copy on this broker, a staged or joining one included. In no order. */
  shardsOn(broker: string): Iterable<string> {
    return this.#shardsOn.get(broker) ?? [];
  }

  /** What readers see: all of this but for the entry that `hold` was called for. */
  get shown(): StateView {
    return this.#held?.view ?? this;
  }

  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** Called before `begin`, for an entry whose rows are written over several turns: until its `end` nobody sees any of it. */
  hold(): void {
    const { incarnationFloor: _internal, ...counters } = this.#header;
    const copies = new HeldRows(this.#copies);
    const moving = new HeldRows(this.#moving);
    const view: StateView = {
      ...counters,
      stateHash: this.stateHash,
      bytes: this.bytes,
      stagedImports: this.stagedImports,
      brokers: this.#brokers.hold(),
      resources: this.#resources.hold(),
      assignments: this.#assignments.hold(),
      copies,
      moving,
    };
    this.#held = { view, copies, moving };
  }

  /** Starts the entry at `index`: the next one, always. Time never falls. */
  begin(index: number, timeMs: number): void {
    if (index !== this.appliedIndex + 1) {
      throw new Error(`entry ${index} applied after ${this.appliedIndex}: entries come in order, each once`);
    }
    this.#header.appliedIndex = index;
    if (timeMs > this.timeMs) this.#header.timeMs = timeMs;
    this.imports.expire(this.timeMs);
  }

  /** Ends the entry; `null`: no reader can see a change. */
  end(): ChangeSet | null {
    const changes = this.#changes;
    this.#changes = [];
    this.#release();
    const index = this.appliedIndex;
    if (index % HASH_INTERVAL === 0) this.#header.hashAt = { index, hash: this.stateHash };
    return changes.length === 0 ? null : { revision: index, changes };
  }

  putBroker(broker: Omit<BrokerRow, 'revision'>): void {
    const row = { ...broker, revision: this.appliedIndex };
    this.#brokers.put(row.id, row);
    this.#changed({ kind: 'broker', broker: row });
  }

  deleteBroker(id: string): void {
    const row = this.#brokers.delete(id);
    if (row === undefined) return;
    this.#header.incarnationFloor = Math.max(this.#header.incarnationFloor, row.incarnation);
    this.#changed({ kind: 'brokerRemoved', id });
  }

  putResource(resource: Omit<ResourceRow, 'revision'>): void {
    const row = { ...resource, revision: this.appliedIndex };
    const previous = this.#resources.put(resourceKey(row), row);
    this.#shardCount += row.shards - (previous?.shards ?? 0);
    this.#changed({ kind: 'resource', resource: row });
  }

  deleteResource(key: string): void {
    const row = this.#resources.delete(key);
    if (row === undefined) return;
    this.#shardCount -= row.shards;
    this.#changed({ kind: 'resourceRemoved', resource: key });
  }

  putAssignment(assignment: Omit<AssignmentRow, 'revision'>): void {
    const row = { ...assignment, revision: this.appliedIndex };
    const previous = this.#assignments.put(row.shard, row) ?? null;
    this.#tally(row, previous);
    if (row.generation > this.maxGeneration) this.#header.maxGeneration = row.generation;
    this.#changed({ kind: 'assignment', assignment: row, previous });
  }

  deleteAssignment(shard: string): void {
    const previous = this.#assignments.delete(shard);
    if (previous === undefined) return;
    this.#tally(null, previous);
    this.#changed({ kind: 'removed', shard, previous });
  }

  setPolicy(policy: Policy): void {
    this.#header.policy = policy;
    this.#header.policyRevision = this.appliedIndex;
    this.#changed({ kind: 'policy', policy });
  }

  /**
   * What has moved may move again from here on: a broker, a resource or the policy changes, a copy catches up that no move
   * was waiting for, or an operator starts or cancels a move or gives a shard up.
   */
  beginPhase(): void {
    this.#header.phase = this.appliedIndex;
  }

  noteRegistration(timeMs: number): void {
    if (this.firstRegisteredAtMs === null) this.#header.firstRegisteredAtMs = timeMs;
  }

  /** The four of these fill an empty state with what a snapshot held. Rows are kept as they are, revisions included. */
  loadHeader(header: Header): void {
    Object.assign(this.#header, header);
  }

  loadBroker(row: BrokerRow): void {
    this.#brokers.put(row.id, row);
  }

  loadResource(row: ResourceRow): void {
    this.#resources.put(resourceKey(row), row);
    this.#shardCount += row.shards;
  }

  loadAssignment(row: AssignmentRow): void {
    this.#tally(row, this.#assignments.put(row.shard, row) ?? null);
  }

  #release(): void {
    if (this.#held === null) return;
    this.#held = null;
    this.#brokers.release();
    this.#resources.release();
    this.#assignments.release();
  }

  #changed(change: Change): void {
    this.#changes.push(change);
    this.#header.revision = this.appliedIndex;
    if (change.kind !== 'assignment' && change.kind !== 'removed') this.beginPhase();
  }

  /** Counts a row in, and out the one that it replaces. */
  #tally(row: AssignmentRow | null, previous: AssignmentRow | null): void {
    const shard = (row ?? previous)?.shard ?? '';
    const now = row?.replicas ?? [];
    const before = previous?.replicas ?? [];
    for (const broker of before) if (!now.includes(broker)) this.#removeCopy(broker, shard);
    for (const broker of now) if (!before.includes(broker)) this.#addCopy(broker, shard);
    this.#tallyMove(shard, row, previous);
  }

  #addCopy(broker: string, shard: string): void {
    const shards = this.#shardsOn.get(broker) ?? new ShardSet();
    this.#shardsOn.set(broker, shards);
    shards.add(shard);
    this.#countCopies(broker, (this.#copies.get(broker) ?? 0) + 1);
  }

  #removeCopy(broker: string, shard: string): void {
    this.#shardsOn.get(broker)?.delete(shard);
    this.#countCopies(broker, (this.#copies.get(broker) ?? 0) - 1);
  }

  #countCopies(broker: string, count: number): void {
    this.#held?.copies.keep(broker, this.#copies.get(broker));
    if (count > 0) this.#copies.set(broker, count);
    else {
      this.#copies.delete(broker);
      this.#shardsOn.delete(broker);
    }
  }

  #tallyMove(shard: string, row: AssignmentRow | null, previous: AssignmentRow | null): void {
    const move = row?.move ?? null;
    const ended = previous?.move ?? null;
    if (move === null && ended === null) return;
    this.#held?.moving.keep(shard, this.#moving.get(shard));
    if (ended !== null) this.slots.remove(ended);
    if (move === null || row === null) this.#moving.delete(shard);
    else {
      this.slots.add(move);
      this.#moving.set(shard, row);
    }
  }
}
