import { Checkbox, useMantineColorScheme } from "@mantine/core";
import { useState } from "react";
import { beep, notifications, notify, sound } from "./announce";
import { Select } from "./Select";
import { SingleKeysSwitch } from "./SingleKeysSwitch";
import { useSetting } from "./setting";
import { schemes, schemeWords } from "./theme";
import { dayHours, ownZone, timeZone } from "./time";

/** How this browser shows pages to the person who uses it. */
export function Preferences() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const zone = useSetting(timeZone);
  const hours = useSetting(dayHours);
  return (
    <>
      <Select
        label="Theme"
        options={schemes.map((value) => ({ value, label: schemeWords[value] }))}
        value={colorScheme}
        onChange={setColorScheme}
      />
      <Select
        label="Time zone"
        options={[
          { value: "local", label: `Local time (${ownZone()})` },
          { value: "utc", label: "UTC" },
        ]}
        value={zone}
        onChange={timeZone.set}
      />
      <Select
        label="Clock"
        options={[
          { value: "24", label: "24-hour" },
          { value: "12", label: "12-hour" },
        ]}
        value={hours}
        onChange={dayHours.set}
      />
      <SingleKeysSwitch />
      <Announcements />
    </>
  );
}

const unsupported = "This browser does not support notifications.";

/** Both are off by default. The browser also asks before a page may notify. */
function Announcements() {
  const notified = useSetting(notifications) === "on";
  const sounds = useSetting(sound) === "on";
  const can = "Notification" in globalThis;
  const [refusal, setRefusal] = useState("");
  const enable = async () => {
    if ((await Notification.requestPermission()) !== "granted") {
      return setRefusal(
        "This browser blocks notifications from Tocsin. You can change that in its settings for this site.",
      );
    }
    if (!notify("You will be notified of new alerts.")) return setRefusal(unsupported);
    setRefusal("");
    notifications.set("on");
  };
  return (
    <>
      <Checkbox
        size="xs"
        label="Notify me about new alerts"
        description={can ? refusal || "Works while Tocsin is open in a tab." : unsupported}
        disabled={!can}
        checked={notified}
        onChange={(event) => {
          if (event.currentTarget.checked) void enable();
          else notifications.set("off");
        }}
      />
      <Checkbox
        size="xs"
        label="Sound for new alerts"
        checked={sounds}
        onChange={(event) => {
          sound.set(event.currentTarget.checked ? "on" : "off");
          if (event.currentTarget.checked) beep();
        }}
      />
    </>
  );
}
