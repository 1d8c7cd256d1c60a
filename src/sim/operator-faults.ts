import type { PlacementView } from './kit.ts';
import type { OperatorAction } from './plan.ts';

/** What an operator asks of the control plane may take so long. */
const OPERATOR_MS = 5_000;

export interface OperatorHost {
  /** Refusals and time-outs are right answers. */
  ask(request: (placement: PlacementView) => Promise<void>): void;
  during(forMs: number, begin: () => void, end: () => void): void;
  /** What was acknowledged until now is not looked for any more. */
  forget(): void;
}

/** Carries out what operators do besides draining. */
export function operate(action: OperatorAction, host: OperatorHost): void {
  switch (action.type) {
    case 'reimport':
      host.forget();
      host.ask((placement) => placement.reimport(action.byMs, OPERATOR_MS));
      break;
    case 'cancelMoves':
      host.ask((placement) => placement.cancelMoves(OPERATOR_MS));
      break;
    case 'policy':
      host.during(
        action.forMs,
        () => host.ask((placement) => placement.setPolicy(action.changes, OPERATOR_MS)),
        () => host.ask((placement) => placement.setPolicy(null, OPERATOR_MS)),
      );
  }
}
