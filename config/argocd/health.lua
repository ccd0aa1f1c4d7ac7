-- The health of Katalogs, Komposers, Motifs and the custom resources that Orkestra operates, for Argo CD.
-- It follows kstatus, which Flux and `kubectl wait` use. `ork generate argocd` prints the settings that contain it.

local function condition(kind)
  if obj.status == nil or obj.status.conditions == nil then
    return nil
  end
  for _, one in ipairs(obj.status.conditions) do
    if one.type == kind then
      return one
    end
  end
  return nil
end

local function message(one, default)
  if one.message ~= nil and one.message ~= "" then
    return one.message
  end
  if one.reason ~= nil and one.reason ~= "" then
    return one.reason
  end
  return default
end

local function health(status, text)
  return { status = status, message = text }
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "Deletion is in progress")
end

-- A Motif is part of the Katalogs that import it, which report its errors.
if obj.kind == "Motif" and obj.apiVersion == "orkestra.orkspace.io/v1" then
  return health("Healthy", "Katalogs that import it report its errors")
end

local ready = condition("Ready")

-- Without a status subresource the generation changes with each status, and no generation is observed.
local observed = nil
if obj.status ~= nil then
  observed = obj.status.observedGeneration
end
if observed == nil and ready ~= nil then
  observed = ready.observedGeneration
end
if observed ~= nil and observed ~= obj.metadata.generation then
  return health("Progressing", "The operator has not processed the latest generation yet")
end

local suspended = condition("Suspended")
if suspended ~= nil and suspended.status == "True" then
  return health("Suspended", message(suspended, "Suspended"))
end
if obj.spec ~= nil and (obj.spec.suspend == true or obj.spec.suspend == "true") then
  return health("Suspended", "spec.suspend is true")
end

if ready == nil then
  return health("Progressing", "No operator has processed it yet")
end

local reconciling = condition("Reconciling")
if reconciling ~= nil and reconciling.status == "True" then
  return health("Progressing", message(reconciling, "Reconciling"))
end
local stalled = condition("Stalled")
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", message(stalled, "Stalled"))
end
if ready.status ~= "True" then
  return health("Progressing", message(ready, "Not ready"))
end
local failing = condition("InstancesFailing")
if failing ~= nil and failing.status == "True" then
  return health("Healthy", message(failing, "InstancesFailing"))
end
local degraded = condition("Degraded")
if degraded ~= nil and degraded.status == "True" then
  return health("Healthy", message(degraded, "Degraded"))
end
return health("Healthy", message(ready, "Ready"))
