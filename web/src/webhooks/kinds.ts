import { IconSlack, IconWebhook } from "../ui/icons";

export const kinds = {
  slack: { word: "Slack", icon: IconSlack },
  generic: { word: "Generic", icon: IconWebhook },
} as const;
