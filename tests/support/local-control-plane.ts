import { applyAll } from './apply-all.ts';
import type { Clock } from '../../raft/index.ts';
import { Machine } from '../../src/apply/index.ts';
import {
  encodeCommand,
  COMMAND_VERSION,
  type Command,
  type Proposed,
  type ProposeOptions,
} from '../../src/command/index.ts';
import { ClusterTime } from '../../src/cluster-time.ts';
import type { ControlPlane, Leadership, RaftStatusView } from '../../src/control-plane.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { errorOf } from '../../src/state/index.ts';
import { ChangeRing, type RingLimits } from '../../src/watch/index.ts';

/** How long a write, a quorum round or a question to another node takes, ms. */
const HOP_MS = 1;

/**
 * A quorum without Raft, for tests of what stands on one: the members share one applied state, a leader is who the
 * test says, and a write or a quorum round takes a moment of virtual time. Terms, the no-op, conditions on the term
 * are as the real one has them; cluster time is the real one's.
 */
export class LocalQuorum {
  readonly clusterId: string;
  readonly members = new Map<string, LocalMember>();
  readonly ring: ChangeRing;
  readonly machine: Machine;
  /** Every command that reached the log, in order. */
  readonly log: { readonly term: number; readonly command: Command }[] = [];
  /** While true, no quorum round and no write ends: the leader is cut off. */
  held = false;
  /** While true, writes wait, and reads that have to see them: entries are not applied. Quorum rounds go on. */
  writesHeld = false;
  term = 0;
  leaderId: string | null = null;
  /** Rounds begun, for tests of batching. */
  rounds = 0;
  #index = 0;
  #heldBack: (() => void)[] = [];

  constructor(clusterId: string, ring?: RingLimits) {
    this.clusterId = clusterId;
    this.ring = ring === undefined ? new ChangeRing() : new ChangeRing(ring);
    this.machine = new Machine(this.ring);
  }

  join(nodeId: string, clock: Clock): LocalMember {
    const member = new LocalMember(this, nodeId, clock);
    this.members.set(nodeId, member);
    return member;
  }

  /** The member is elected in a new term and its no-op applied; `null`: nobody leads. */
  elect(nodeId: string | null): void {
    const before = this.leader;
    this.term++;
    this.leaderId = nodeId;
    this.release();
    if (nodeId !== null) {
      this.#apply(new Uint8Array(0), 'noop');
    }
    for (const member of this.members.values()) {
      if (member.nodeId === nodeId) member.time.run();
      else member.time.stop();
    }
    for (const member of this.members.values()) if (member !== before) member.tell();
    before?.tell();
  }

  release(): void {
    this.held = false;
    this.writesHeld = false;
    for (const run of this.#heldBack.splice(0)) run();
  }

  get leader(): LocalMember | undefined {
    return this.leaderId === null ? undefined : this.members.get(this.leaderId);
  }

  clusterTimeMs(): number {
    return this.leader?.clusterTimeMs() ?? this.machine.view.timeMs;
  }

  /** Runs `then` once a quorum has acknowledged today's leader; `fail` if another leads by then. */
  quorum(clock: Clock, waitsForApply: boolean, then: () => void, fail: () => void): void {
    const { term } = this;
    const attempt = (): void => {
      if (term !== this.term || this.leaderId === null) fail();
      else if (this.held || (waitsForApply && this.writesHeld)) this.#heldBack.push(attempt);
      else then();
    };
    clock.setTimeout(attempt, HOP_MS);
  }

  write(command: Command, options: ProposeOptions, timeMs = this.clusterTimeMs()): Proposed {
    this.log.push({ term: this.term, command });
    const data = encodeCommand({
      version: COMMAND_VERSION,
      timeMs,
      request: options.request ?? null,
      inTerm: options.inTerm ?? null,
      command,
    });
    const result = this.#apply(data, 'command');
    if (result === null) throw new Error('a command without a result');
    if (!result.ok) throw errorOf(result);
    return { revision: result.revision, value: result.value };
  }

  #apply(data: Uint8Array, kind: 'noop' | 'command'): ReturnType<Machine['apply']>[number] {
    const [result] = applyAll(this.machine, [{ index: ++this.#index, term: this.term, kind, data }]);
    return result ?? null;
  }
}

/** One node of it. */
export class LocalMember implements ControlPlane {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly time: ClusterTime;
  readonly #quorum: LocalQuorum;
  readonly #services = new Map<string, (params: unknown) => Promise<unknown>>();
  readonly #listeners = new Set<(leadership: Leadership) => void>();

  constructor(quorum: LocalQuorum, nodeId: string, clock: Clock) {
    this.#quorum = quorum;
    this.nodeId = nodeId;
    this.clusterId = quorum.clusterId;
    this.clock = clock;
    this.time = new ClusterTime(clock, () => quorum.machine.view.timeMs);
  }

  get state(): ControlPlane['state'] {
    return this.#quorum.machine.view;
  }

  get feed(): ControlPlane['feed'] {
    return this.#quorum.ring;
  }

  leadership(): Leadership {
    const { term, leaderId } = this.#quorum;
    return { term, leaderId, established: leaderId === this.nodeId };
  }

  onLeadership(listener: (leadership: Leadership) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(): void {
    for (const listener of this.#listeners) listener(this.leadership());
  }

  propose(command: Command, options: ProposeOptions): Promise<Proposed> {
    const quorum = this.#quorum;
    const { term } = quorum;
    return new Promise((resolve, reject) => {
      const wrongTerm = options.inTerm !== undefined && (options.inTerm !== term || quorum.leader !== this);
      if (quorum.leaderId === null || wrongTerm) {
        reject(new EvenkeelError('no_leader', 'no leader of that term here'));
        return;
      }
      const write = (): void => {
        try {
          resolve(quorum.write(command, options));
        } catch (error) {
          reject(error);
        }
      };
      const lost = (): void => reject(new EvenkeelError('outcome_unknown', 'the leader changed meanwhile'));
      quorum.quorum(this.clock, true, write, lost);
    });
  }

  readBarrier(): Promise<void> {
    return this.#round({ waitsForApply: true });
  }

  confirmLeadership(): Promise<void> {
    return this.#round({ waitsForApply: false });
  }

  #round({ waitsForApply }: { waitsForApply: boolean }): Promise<void> {
    const quorum = this.#quorum;
    quorum.rounds++;
    return new Promise((resolve, reject) => {
      const lost = (): void => reject(new EvenkeelError('no_leader', 'the leader changed meanwhile'));
      quorum.quorum(this.clock, waitsForApply, resolve, lost);
    });
  }

  async askLeader(method: string, params: unknown): Promise<unknown> {
    const leader = this.#quorum.leader;
    if (leader === undefined) throw new EvenkeelError('no_leader', 'nobody leads');
    return this.askMember(leader.nodeId, method, params);
  }

  async askMember(member: string, method: string, params: unknown): Promise<unknown> {
    const asked = this.#quorum.members.get(member);
    const service = asked?.service(method);
    if (service === undefined) throw new EvenkeelError('unknown_method', method);
    // As between processes: it comes in turn, not while that one is stalled, and what is asked and answered is copied.
    await new Promise<void>((arrived) => asked?.clock.setTimeout(arrived, HOP_MS));
    return structuredClone(await service(structuredClone(params)));
  }

  service(method: string): ((params: unknown) => Promise<unknown>) | undefined {
    return this.#services.get(method);
  }

  serve(method: string, service: (params: unknown) => Promise<unknown>): void {
    this.#services.set(method, service);
  }

  clusterTimeMs(): number {
    return this.time.nowMs();
  }

  raftStatus(): RaftStatusView {
    const { term, leaderId } = this.#quorum;
    const { appliedIndex } = this.state;
    return {
      role: leaderId === this.nodeId ? 'leader' : 'follower',
      term,
      leaderId,
      commitIndex: appliedIndex,
      appliedIndex,
      lastIndex: appliedIndex,
      members: [...this.#quorum.members.keys()].map((id) => ({ id, address: `${id}:1`, voter: true })),
      ready: leaderId !== null,
    };
  }
}
