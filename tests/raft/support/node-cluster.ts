import {
  MemoryStorage,
  RaftNode,
  type Clock,
  type Configuration,
  type Entry,
  type MemberId,
  type Message,
  type RaftLimits,
  type RaftStorage,
  type StateMachine,
  type StorageWrite,
  type StoredState,
  type Timer,
  type Transport,
  type TransportHandler,
} from '../../../raft/index.ts';
import { SeededRandom } from './random.ts';
import { VirtualClock } from './virtual-clock.ts';

const PART_BYTES = 64;

/** Keeps what it was given, so that tests can compare members; its snapshot is that list. */
export class ListMachine implements StateMachine {
  items: string[] = [];
  /** Largest slice it was given at once. */
  largestSlice = 0;
  failAt: number | null = null;
  partsTaken = 0;

  apply(entries: readonly Entry[]): unknown[] {
    this.largestSlice = Math.max(this.largestSlice, entries.length);
    return entries.map((entry) => {
      if (entry.index === this.failAt) throw new Error(`cannot apply ${entry.index}`);
      const text = entry.kind === 'command' ? new TextDecoder().decode(entry.data) : entry.kind;
      this.items.push(`${entry.index}@${entry.term} ${text}`);
      return `applied ${text}`;
    });
  }

  snapshot(): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.items));
  }

  /** A few bytes a turn, of what it holds now. */
  *#parts(data: Uint8Array): Generator<Uint8Array, void> {
    for (let at = 0; at < data.length; at += PART_BYTES) {
      this.partsTaken++;
      yield data.subarray(at, at + PART_BYTES);
    }
  }

  snapshotParts(): Iterator<Uint8Array> {
    return this.#parts(this.snapshot());
  }

  restore(data: Uint8Array): void {
    this.items = JSON.parse(new TextDecoder().decode(data)) as string[];
  }
}

/** A disk whose writes the test can hold back or fail. */
export class HeldStorage implements RaftStorage {
  readonly #inner = new MemoryStorage();
  #waiting: (() => void)[] = [];
  held = false;
  failing = false;
  writes = 0;

  load(): Promise<StoredState> {
    return this.#inner.load();
  }

  async write(batch: StorageWrite): Promise<void> {
    this.writes += 1;
    if (this.failing) throw new Error('the disk is gone');
    if (this.held) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    await this.#inner.write(batch);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  release(): void {
    this.held = false;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

/** One process's view of the common clock: while it is stopped nothing of it runs, and what comes due waits. */
class ProcessClock implements Clock {
  readonly #base: VirtualClock;
  #stopped = false;
  #waiting: (() => void)[] = [];

  constructor(base: VirtualClock) {
    this.#base = base;
  }

  now(): number {
    return this.#base.now();
  }

  wallNow(): number {
    return this.#base.wallNow();
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    return this.#base.setTimeout(() => this.run(callback), delayMs);
  }

  clearTimeout(timer: Timer): void {
    this.#base.clearTimeout(timer);
  }

  defer(callback: () => void): void {
    this.#base.defer(() => this.run(callback));
  }

  run(callback: () => void): void {
    if (this.#stopped) this.#waiting.push(callback);
    else callback();
  }

  stop(): void {
    this.#stopped = true;
  }

  continue(): void {
    this.#stopped = false;
    for (const callback of this.#waiting.splice(0)) callback();
  }
}

class VirtualTransport implements Transport {
  handler: TransportHandler | null = null;
  readonly #net: NodeCluster;
  readonly #id: MemberId;

  constructor(net: NodeCluster, id: MemberId) {
    this.#net = net;
    this.#id = id;
  }

  bind(handler: TransportHandler): void {
    this.handler = handler;
  }

  start(): Promise<void> {
    this.#net.connected(this.#id);
    return Promise.resolve();
  }

  send(messages: readonly Message[]): void {
    this.#net.carry(messages);
  }

  isConnected(peer: MemberId): boolean {
    return this.#net.linked(this.#id, peer);
  }

  stop(): Promise<void> {
    this.#net.disconnected(this.#id);
    return Promise.resolve();
  }
}

interface Member {
  node: RaftNode;
  transport: VirtualTransport;
  storage: HeldStorage;
  machine: ListMachine;
  process: ProcessClock;
}

/** Real nodes in one process over virtual time and links with a delay of 1 ms. */
export class NodeCluster {
  readonly clock = new VirtualClock();
  readonly members = new Map<MemberId, Member>();
  readonly #ids: readonly MemberId[];
  readonly #limits: Partial<RaftLimits>;
  readonly #cut = new Set<string>();
  #boots = 0;
  /** Sees every message before it is carried; `false` drops it. */
  filter: (message: Message) => boolean = () => true;

  private constructor(ids: readonly MemberId[], limits: Partial<RaftLimits>) {
    this.#ids = ids;
    this.#limits = limits;
  }

  static async start(ids: readonly MemberId[], limits: Partial<RaftLimits> = {}): Promise<NodeCluster> {
    const cluster = new NodeCluster(ids, limits);
    for (const id of ids) await cluster.boot(id, new HeldStorage());
    return cluster;
  }

  async boot(id: MemberId, storage: HeldStorage): Promise<Member> {
    const configuration: Configuration = { voters: this.#ids, outgoing: [], learners: [], learnersNext: [] };
    const transport = new VirtualTransport(this, id);
    const machine = new ListMachine();
    this.#boots += 1;
    const random = new SeededRandom(this.#boots * 7919);
    const process = new ProcessClock(this.clock);
    const member: Member = { transport, storage, machine, process, node: undefined as never };
    this.members.set(id, member);
    member.node = await RaftNode.start({
      id,
      configuration,
      storage,
      transport,
      stateMachine: machine,
      clock: process,
      random,
      limits: this.#limits,
    });
    return member;
  }

  of(id: MemberId): Member {
    const member = this.members.get(id);
    if (member === undefined) throw new Error(`no member ${id}`);
    return member;
  }

  node(id: MemberId): RaftNode {
    return this.of(id).node;
  }

  /** Lets time pass until a leader's no-op is applied; answers who leads. */
  async leader(among: readonly MemberId[] = this.#ids): Promise<MemberId> {
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 20) {
      const leaders = among.filter((id) => this.members.has(id) && this.node(id).status().noopApplied);
      const newest = leaders.sort((a, b) => this.node(b).status().term - this.node(a).status().term)[0];
      if (newest !== undefined) return newest;
      await this.clock.advance(20);
    }
    throw new Error('nobody leads after 20 s');
  }

  linked(a: MemberId, b: MemberId): boolean {
    return (
      this.members.has(a) && this.members.has(b) && !this.#cut.has(`${a} ${b}`) && !this.#cut.has(`${b} ${a}`)
    );
  }

  /** SIGSTOP. What arrives waits in its sockets; its timers do not fire. */
  freeze(id: MemberId): void {
    this.of(id).process.stop();
  }

  /** SIGCONT. */
  thaw(id: MemberId): void {
    this.of(id).process.continue();
  }

  /** The link is silent; its sockets stay open unless `closed`. */
  cut(a: MemberId, b: MemberId, closed = false): void {
    this.#cut.add(`${a} ${b}`);
    if (!closed) return;
    this.members.get(a)?.transport.handler?.onPeerDown(b);
    this.members.get(b)?.transport.handler?.onPeerDown(a);
  }

  isolate(id: MemberId): void {
    for (const other of this.#ids) if (other !== id) this.cut(id, other);
  }

  heal(): void {
    this.#cut.clear();
  }

  connected(id: MemberId): void {
    const boot = `${id}#${this.#boots}`;
    for (const other of this.members.keys()) {
      if (other === id || !this.linked(id, other)) continue;
      this.of(other).transport.handler?.onPeerUp(id, boot);
      this.of(id).transport.handler?.onPeerUp(other, `${other}#0`);
    }
  }

  disconnected(id: MemberId): void {
    for (const [other, member] of this.members) if (other !== id) member.transport.handler?.onPeerDown(id);
  }

  carry(messages: readonly Message[]): void {
    for (const message of messages) {
      if (!this.linked(message.from, message.to) || !this.filter(message)) continue;
      const target = this.members.get(message.to);
      this.clock.setTimeout(() => {
        if (this.linked(message.from, message.to) && this.members.get(message.to) === target) {
          target?.process.run(() => target.transport.handler?.onMessages([message]));
        }
      }, 1);
    }
  }

  /** The process dies: its peers see their sockets close, its disk keeps what was written. */
  async kill(id: MemberId): Promise<HeldStorage> {
    const { storage, node } = this.of(id);
    this.members.delete(id);
    await node.stop();
    return storage;
  }

  async stop(): Promise<void> {
    for (const { node, storage } of this.members.values()) {
      storage.release();
      await node.stop();
    }
  }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
