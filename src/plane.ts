import { RaftError, type Clock, type RaftNode, type RaftState } from '../raft/index.ts';
import { fromRaft, Proposer, type Command, type Proposed, type ProposeOptions } from './command/index.ts';
import { ClusterTime } from './cluster-time.ts';
import type { ControlPlane, Leadership, RaftStatusView } from './control-plane.ts';
import { EvenkeelError } from './errors.ts';
import { jsonInSlices } from './json-in-slices.ts';
import type { StateView } from './state/index.ts';
import type { ChangeFeed } from './watch/index.ts';
import { MAX_CALL_BYTES } from './wire/index.ts';

const PROPOSE_METHOD = 'command.propose';

type Service = (params: unknown) => Promise<unknown>;

/** The part of the peer transport that carries calls. Params and answers are bytes. */
export interface PeerCaller {
  serve(
    method: string,
    service: (params: Uint8Array, context: { readonly deadlineMs: number }) => Promise<Uint8Array>,
  ): void;
  call(peer: string, method: string, params: Uint8Array, deadlineMs: number): Promise<Uint8Array>;
}

export interface PlaneOptions {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly raft: RaftNode;
  readonly state: StateView;
  readonly feed: ChangeFeed;
  readonly peers: PeerCaller;
  /** Peer addresses of the members, by id. */
  readonly addresses: ReadonlyMap<string, string>;
}

/** The one implementation of `ControlPlane`: a Raft node, the state it drives, and calls between members. */
export class Plane implements ControlPlane {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly state: StateView;
  readonly feed: ChangeFeed;
  readonly #options: PlaneOptions;
  readonly #proposer: Proposer;
  readonly #services = new Map<string, Service>();
  #leadership: Leadership = { term: 0, leaderId: null, established: false };
  readonly #listeners = new Set<(leadership: Leadership) => void>();
  readonly #time: ClusterTime;

  constructor(options: PlaneOptions) {
    this.#options = options;
    this.nodeId = options.nodeId;
    this.clusterId = options.clusterId;
    this.state = options.state;
    this.feed = options.feed;
    const { clock, raft, peers, nodeId, state } = options;
    this.#time = new ClusterTime(clock, () => state.timeMs);
    this.#proposer = new Proposer({
      nodeId,
      clock,
      leadership: () => this.#leadership,
      onLeadership: (listener) => this.onLeadership(listener),
      clusterTimeMs: () => this.clusterTimeMs(),
      proposeHere: (data, deadlineMs) => raft.propose(data, clock.now() + deadlineMs),
      forward: (leaderId, data, deadlineMs) => peers.call(leaderId, PROPOSE_METHOD, data, deadlineMs),
    });
    peers.serve(PROPOSE_METHOD, (data, { deadlineMs }) => this.#proposer.accept(data, deadlineMs));
    raft.onState((raftState) => this.#follow(raftState));
  }

  leadership(): Leadership {
    return this.#leadership;
  }

  onLeadership(listener: (leadership: Leadership) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  propose(command: Command, options: ProposeOptions): Promise<Proposed> {
    return this.#proposer.propose(command, options);
  }

  async readBarrier(deadlineMs: number): Promise<void> {
    const { raft, clock } = this.#options;
    await this.#confirmed(raft.readBarrier(clock.now() + deadlineMs));
  }

  async confirmLeadership(deadlineMs: number): Promise<void> {
    const { raft, clock } = this.#options;
    await this.#confirmed(raft.readBarrier(clock.now() + deadlineMs, false));
  }

  async #confirmed(round: Promise<number>): Promise<void> {
    try {
      await round;
    } catch (error) {
      // A read has no outcome to be unknown: without a quorum it simply has no answer.
      if (error instanceof RaftError && error.code === 'deadlineExceeded') {
        throw this.#leadership.leaderId === null
          ? new EvenkeelError(
              'no_leader',
              'no leader is known: a quorum of members must be up and reach each other',
            )
          : new EvenkeelError(
              'deadline_exceeded',
              'no quorum confirmed the read in time; retry, or read with local consistency',
            );
      }
      throw fromRaft(error);
    }
  }

  async askLeader(method: string, params: unknown, deadlineMs: number): Promise<unknown> {
    const { leaderId } = this.#leadership;
    if (leaderId === null) {
      throw new EvenkeelError(
        'no_leader',
        'no leader is known: a quorum of members must be up and reach each other',
      );
    }
    return await this.askMember(leaderId, method, params, deadlineMs);
  }

  async askMember(member: string, method: string, params: unknown, deadlineMs: number): Promise<unknown> {
    if (member === this.nodeId) return await this.#service(method)(params);
    return await askPeer(this.#options.peers, member, method, params, deadlineMs);
  }

  serve(method: string, service: Service): void {
    if (this.#services.has(method)) throw new Error(`${method} is served already`);
    this.#services.set(method, service);
    serveToPeers(this.#options.peers, this.#options.clock, method, service);
  }

  clusterTimeMs(): number {
    return this.#time.nowMs();
  }

  raftStatus(): RaftStatusView {
    const { raft, addresses } = this.#options;
    const status = raft.status();
    const { voters, outgoing, learners } = status.configuration;
    const voting = new Set([...voters, ...outgoing]);
    const ids = [...new Set([...voting, ...learners])].sort();
    const role = status.role === 'preCandidate' ? 'candidate' : status.role;
    return {
      role: voting.has(this.nodeId) ? role : 'learner',
      term: status.term,
      leaderId: status.leaderId,
      commitIndex: status.commitIndex,
      appliedIndex: status.appliedIndex,
      lastIndex: status.lastIndex,
      members: ids.map((id) => ({ id, address: addresses.get(id) ?? '', voter: voting.has(id) })),
      ready: status.caughtUp && status.leaderId !== null,
    };
  }

  #service(method: string): Service {
    const service = this.#services.get(method);
    if (service === undefined) throw new EvenkeelError('unknown_method', `this node serves no ${method}`);
    return service;
  }

  #follow({ role, term, leaderId, noopApplied }: RaftState): void {
    const established = role === 'leader' && noopApplied;
    if (!established) this.#time.stop();
    else if (!this.#leadership.established || this.#leadership.term !== term) this.#time.run();
    this.#leadership = { term, leaderId, established };
    for (const listener of [...this.#listeners]) listener(this.#leadership);
  }
}

/** Calls between members are JSON inside the peers' frames; `undefined` fields are left out. */
export async function askPeer(
  peers: PeerCaller,
  member: string,
  method: string,
  params: unknown,
  deadlineMs: number,
): Promise<unknown> {
  return parse(await peers.call(member, method, Buffer.from(JSON.stringify(params)), deadlineMs));
}

export function serveToPeers(peers: PeerCaller, clock: Clock, method: string, service: Service): void {
  peers.serve(method, async (params) => {
    const { pieces } = await jsonInSlices(await service(parse(params)), clock, MAX_CALL_BYTES);
    return Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
  });
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    throw new EvenkeelError('protocol_error', 'a member sent what is no JSON');
  }
}
