import { hashHigh, hashLow } from './hash.ts';
import type { Broker, Policy, Resource } from './model.ts';

/**
 * What a cluster file's phase is of: a mark of its brokers, resources and policy, each as the file has it and in its order.
 * A file whose mark is another was edited since it was printed: what had moved is of a phase that is over.
 */
export class PhaseMark {
  #high = 0;
  #low = 0;

  constructor(policy: Policy) {
    this.add(policy);
  }

  add(row: Broker | Resource | Policy): void {
    const text = JSON.stringify(row);
    this.#high = (Math.imul(this.#high, 31) + hashHigh(text)) | 0;
    this.#low = (Math.imul(this.#low, 31) + hashLow(text)) | 0;
  }

  /** 16 hexadecimal digits. */
  get text(): string {
    return [this.#high, this.#low].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
