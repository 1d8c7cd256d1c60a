import type { Clock } from '../../raft/index.ts';
import type { ControlPlane, Leadership, RaftStatusView } from '../../src/control-plane.ts';
import { createSystemClock } from '../../src/clock.ts';
import { EvenkeelError } from '../../src/errors.ts';
import type { Command, Proposed, ProposeOptions } from '../../src/command/index.ts';
import type { LastPlan } from '../../src/control/index.ts';
import { createMetrics } from '../../src/metrics.ts';
import { createProcessMetrics } from '../../src/metrics-process.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';
import type { Listener } from '../../src/net.ts';
import { createAdminSurface, type AdminSurface } from '../../src/wire/index.ts';
import { Harness } from '../src/apply/harness.ts';

const PROCESS = createProcessMetrics('n1');

type Service = (params: unknown) => Promise<unknown>;

/** A control plane of one: commands go through the real state machine, at once. Knobs stand for what a quorum may do. */
export class HarnessPlane implements ControlPlane {
  readonly nodeId = 'n1';
  readonly clusterId = 'test';
  readonly harness: Harness;
  readonly feed;
  readonly proposed: { command: Command; options: ProposeOptions }[] = [];
  readonly services = new Map<string, Service>();
  members: RaftStatusView['members'] = [{ id: 'n1', address: '127.0.0.1:7501', voter: true }];
  leaderId: string | null = 'n1';
  term = 3;
  ready = true;
  /** What a proposal does before, or instead of, being applied. */
  onPropose: (command: Command) => Promise<void> = async () => undefined;
  onBarrier: () => Promise<void> = async () => undefined;
  onAskMember: (member: string) => Promise<unknown> = async (member) => {
    throw new EvenkeelError('unreachable', `cannot reach ${member}`);
  };

  constructor(harness = new Harness()) {
    this.harness = harness;
    this.feed = harness.ring;
  }

  get state() {
    return this.harness.state;
  }

  leadership(): Leadership {
    return { term: this.term, leaderId: this.leaderId, established: this.leaderId === this.nodeId };
  }

  onLeadership(): () => void {
    return () => undefined;
  }

  async propose(command: Command, options: ProposeOptions): Promise<Proposed> {
    this.proposed.push({ command, options });
    await this.onPropose(command);
    const result = this.harness.do(command, options.request ?? null);
    if (!result.ok) throw new EvenkeelError(result.error.code, result.error.message);
    return { revision: result.revision, value: result.value };
  }

  confirmLeadership(): Promise<void> {
    return Promise.resolve();
  }

  readBarrier(): Promise<void> {
    return this.onBarrier();
  }

  async askLeader(method: string, params: unknown): Promise<unknown> {
    if (this.leaderId === null) throw new EvenkeelError('no_leader', 'no leader is known');
    const service = this.services.get(method);
    if (service === undefined) throw new EvenkeelError('unavailable', `nobody serves ${method} here`);
    return service(params);
  }

  askMember(member: string, method: string, params: unknown): Promise<unknown> {
    const own = member === this.nodeId ? this.services.get(method) : undefined;
    return own === undefined ? this.onAskMember(member) : own(params);
  }

  serve(method: string, service: Service): void {
    this.services.set(method, service);
  }

  clusterTimeMs(): number {
    return this.state.timeMs;
  }

  raftStatus(): RaftStatusView {
    const { appliedIndex } = this.state;
    const role = this.leaderId === this.nodeId ? 'leader' : 'follower';
    return {
      role,
      term: this.term,
      leaderId: this.leaderId,
      commitIndex: appliedIndex,
      appliedIndex,
      lastIndex: appliedIndex,
      members: this.members,
      ready: this.ready,
    };
  }
}

/** The admin surface of a `HarnessPlane` on a real socket. */
export class AdminNode {
  readonly plane: HarnessPlane;
  readonly faults: unknown[] = [];
  readonly health = { storageOpen: true, draining: false };
  clock: Clock = createSystemClock();
  surface!: AdminSurface;
  #listener: Listener | null = null;
  /** What `/metrics` is told of the leader's last plan. */
  lastPlan: LastPlan | null = null;

  constructor(plane = new HarnessPlane()) {
    this.plane = plane;
  }

  static async start(plane = new HarnessPlane(), address = '127.0.0.1:0'): Promise<AdminNode> {
    const node = new AdminNode(plane);
    await node.listen(address);
    return node;
  }

  async listen(address: string): Promise<void> {
    const stats = {
      passes: 2,
      lastPassMs: 5,
      failedPasses: 1,
      accepted: new Map([['stage/balance', 4]]),
      refused: new Map([['stale', 3]]),
    };
    const lastPlan = (): LastPlan | null => this.lastPlan;
    const control = {
      stats,
      get lastPlan() {
        return lastPlan();
      },
    };
    const metrics = createMetrics({ plane: this.plane, control, clock: this.clock, ofProcess: PROCESS });
    this.surface = createAdminSurface({
      plane: this.plane,
      clock: this.clock,
      health: { storageOpen: () => this.health.storageOpen, draining: () => this.health.draining },
      metrics,
      version: '9.9.9',
      onFault: (error) => void this.faults.push(error),
    });
    this.#listener = await createWebSocketNet().listen(address, {
      routes: { '/rpc': this.surface.rpcRoute },
      http: this.surface.http,
    });
  }

  get address(): string {
    return this.#listener?.address ?? '';
  }

  get url(): string {
    return `http://${this.address}`;
  }

  async stop(): Promise<void> {
    this.surface.close();
    await this.#listener?.close();
    this.#listener = null;
  }

  /** One JSON-RPC message by POST, as text. */
  async post(body: string): Promise<Response> {
    return fetch(`${this.url}/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
  }

  async call(
    method: string,
    params?: unknown,
  ): Promise<{ result?: Record<string, unknown>; error?: RpcError }> {
    const response = await this.post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    return (await response.json()) as { result?: Record<string, unknown>; error?: RpcError };
  }
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}
