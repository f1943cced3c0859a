import type { Rule } from "../api/client";
import type { Kept, Kind } from "../drafts/draft";
import { initialValues, type Values } from "./values";

export const ruleKind: Kind<Values> = { word: "rule", blank: initialValues };

export type KeptRule = Kept<Values, Rule>;
