import type { StateView } from '../state/index.ts';

/** A view that follows the state wherever it is replaced: what readers hold for the node's life. */
export function liveView(current: () => StateView): StateView {
  return {
    get appliedIndex() {
      return current().appliedIndex;
    },
    get revision() {
      return current().revision;
    },
    get timeMs() {
      return current().timeMs;
    },
    get brokers() {
      return current().brokers;
    },
    get resources() {
      return current().resources;
    },
    get assignments() {
      return current().assignments;
    },
    get copies() {
      return current().copies;
    },
    get moving() {
      return current().moving;
    },
    get policy() {
      return current().policy;
    },
    get policyRevision() {
      return current().policyRevision;
    },
    get phase() {
      return current().phase;
    },
    get firstRegisteredAtMs() {
      return current().firstRegisteredAtMs;
    },
    get maxGeneration() {
      return current().maxGeneration;
    },
    get bytes() {
      return current().bytes;
    },
    get stagedImports() {
      return current().stagedImports;
    },
    get stateHash() {
      return current().stateHash;
    },
    get hashAt() {
      return current().hashAt;
    },
  };
}
