import { EvenkeelError } from '../errors.ts';
import { disconnected, heartbeat, leave, register } from './broker-service.ts';
import { newPassStats, type LastPlan, type PassStats } from './passes.ts';
import { serveOperators } from './operator-service.ts';
import type { ControlOptions } from './options.ts';
import { confirm, report } from './report-service.ts';
import type { BrokerServices } from '../broker-services.ts';
import { Tenure } from './tenure.ts';
import { checkTimings } from './timings.ts';

/**
 * What only the Raft leader does: it listens to brokers, declares the silent ones down, plans and writes
 * placements, and answers what asks for any of it. It begins with every leadership of this node, once the no-op
 * of the term is applied, and forgets everything with its end.
 */
export class Control {
  readonly #options: ControlOptions;
  readonly #stats = newPassStats();
  #tenure: Tenure | null = null;
  #unsubscribe: () => void = () => {};

  /** Throws where the timings contradict each other. Registers its services with the plane. */
  constructor(options: ControlOptions) {
    checkTimings(options.timings);
    this.#options = options;
    this.#serveBrokers();
    serveOperators(options.plane, options.timings, () => this.tenure());
  }

  start(): void {
    this.#unsubscribe = this.#options.plane.onLeadership(() => this.#follow());
    this.#follow();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#end();
    await this.#options.planner.close();
  }

  /** Counters of placement passes since the process started. */
  get stats(): PassStats {
    return this.#stats;
  }

  /** The last pass's plan while this node leads. */
  get lastPlan(): LastPlan | null {
    return this.#tenure?.passes.last ?? null;
  }

  /** What this leadership knows; throws `no_leader` where this node does not lead. */
  tenure(): Tenure {
    if (this.#tenure === null || this.#tenure.isOver) {
      throw new EvenkeelError('no_leader', 'this node does not lead the quorum; retry');
    }
    return this.#tenure;
  }

  #follow(): void {
    const { plane, planner } = this.#options;
    const { established, term } = plane.leadership();
    if (established && this.#tenure?.term === term) return;
    this.#end();
    if (!established) return;
    planner.start();
    this.#tenure = new Tenure(this.#options, term, this.#stats);
    this.#tenure.start();
  }

  #end(): void {
    if (this.#tenure === null) return;
    this.#tenure.close();
    this.#tenure = null;
    this.#options.planner.stop();
  }

  #serveBrokers(): void {
    const { plane, timings } = this.#options;
    const { state } = plane;
    const services: BrokerServices = {
      'broker.register': (params) => register(this.tenure(), state, timings, params),
      'broker.heartbeat': (params) => heartbeat(this.tenure(), state, timings, params),
      'broker.report': (params) => report(this.tenure(), state, params),
      'broker.confirm': (params) => confirm(this.tenure(), state, params),
      'broker.leave': (params) => leave(this.tenure(), state, params),
      'broker.disconnected': async (params) => {
        disconnected(this.tenure(), params);
        return {};
      },
    };
    for (const [method, service] of Object.entries(services)) {
      // Sessions check every field before they ask; between members the link itself is checked.
      plane.serve(method, async (params) => (service as (params: unknown) => Promise<unknown>)(params));
    }
  }
}
